//go:build linux

package editor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/pty"
)

// A reading is what Read returned.
type reading struct {
	Text string
	Err  string `json:",omitempty"`
}

// inChild is set in a process of this test that has a terminal for its standard streams. It reads messages until there
// are no more, and writes what it gets to file 3. After the message "leave" it reads on until file 4 ends, and ends.
const inChild = "AMKC_TEST_EDITOR"

func TestMain(m *testing.M) {
	if os.Getenv(inChild) == "" {
		os.Exit(m.Run())
	}
	e := New(os.Stdin, os.Stdout)
	out := json.NewEncoder(os.NewFile(3, "readings"))
	if e == nil {
		_ = out.Encode(reading{Err: "no editor"})
		return
	}
	for {
		text, err := e.Read()
		r := reading{Text: text}
		if err != nil {
			r.Err = err.Error()
		}
		if _ = out.Encode(r); err != nil && !errors.Is(err, context.Canceled) {
			return
		}
		if text == "leave" {
			go e.Read()
			_, _ = io.ReadAll(os.NewFile(4, "leave"))
			e.Restore()
			return
		}
	}
}

// A typist sits at the terminal of a child.
type typist struct {
	t                *testing.T
	master, terminal *os.File
	readings         *json.Decoder
	leave            *os.File
}

func start(t *testing.T, env ...string) *typist {
	master, terminal := pty.Open(t)
	results, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { results.Close() })
	wait, leave, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { leave.Close() })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), inChild+"=1", "TERM=xterm-256color", "INPUTRC=/dev/null"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.ExtraFiles = []*os.File{write, wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, errors.Join(write.Close(), wait.Close()))
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &typist{t, master, terminal, json.NewDecoder(results), leave}
}

// await reads what the terminal shows as far as a text.
func (y *typist) await(text string) string {
	y.t.Helper()
	var b []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(b), text); b = append(b, one[0]) {
		_, err := y.master.Read(one)
		require.NoError(y.t, err, "waiting for %q after %q", text, b)
	}
	return string(b)
}

// ready waits for the prompt of the next message: what is typed earlier is edited by the terminal.
func (y *typist) ready() string {
	y.t.Helper()
	return y.await("\x1b[?2004h") + y.await("> ")
}

// types types keys at the prompt, and returns what the child read.
func (y *typist) types(keys string) reading {
	y.t.Helper()
	y.ready()
	_, err := io.WriteString(y.master, keys)
	require.NoError(y.t, err)
	var r reading
	require.NoError(y.t, y.readings.Decode(&r))
	return r
}

const (
	left, up, down, home = "\x1b[D", "\x1b[A", "\x1b[B", "\x01"
	backspace, enter     = "\x7f", "\r"
	pasteBegins          = "\x1b[200~"
	pasteEnds            = "\x1b[201~"
)

// Characters are edited as they are seen: an emoji is one, whatever it is made of.
func TestEditing(t *testing.T) {
	y := start(t)
	for _, c := range []struct{ keys, want string }{
		{"hello" + enter, "hello"},
		{"a😀b" + left + left + backspace + enter, "😀b"},
		{"a😀b" + left + backspace + "c" + enter, "acb"},
		{"日本語" + left + backspace + "の" + enter, "日の語"},
		{"world" + home + "hello " + enter, "hello world"},
		{"one two three\x17\x17four" + enter, "one four"}, // Ctrl-W
	} {
		require.Equal(t, reading{Text: c.want}, y.types(c.keys), "%q", c.keys)
	}
	require.Equal(t, reading{Err: io.EOF.Error()}, y.types("\x04"))
}

// Earlier messages come back, with all of their lines.
func TestHistory(t *testing.T) {
	y := start(t)
	require.Equal(t, reading{Text: "first"}, y.types("first"+enter))
	require.Equal(t, reading{Text: "one\ntwo"}, y.types(pasteBegins+"one\rtwo"+pasteEnds+enter))
	require.Equal(t, reading{Text: "one\ntwo!"}, y.types(up+"!"+enter))
	require.Equal(t, reading{Text: "third"}, y.types("third"+enter))
	require.Equal(t, reading{Text: "first again"}, y.types("\x12irs\x05 again"+enter)) // Ctrl-R
}

// What is pasted is one message, also with empty lines, and what would act on the terminal is not a part of it.
func TestPaste(t *testing.T) {
	y := start(t)
	require.Equal(t, reading{Text: "see: def f():\n\treturn 1\n\n# 👩‍💻 end"},
		y.types("see: "+pasteBegins+"def f():\r\n\treturn 1\r\n\r\n# 👩‍💻 "+pasteEnds+"end"+enter))
	require.Equal(t, reading{Text: "a[2Jb]0;xc\nd"},
		y.types(pasteBegins+"a\x1b[2Jb\x1b]0;x\ac\u202e\u009b\nd"+pasteEnds+enter))
	shown := y.ready()
	for _, acts := range []string{"\x1b[2J", "\x1b]0;", "\a", "\u202e", "\u009b"} {
		require.NotContains(t, shown, acts)
	}
	long := strings.Repeat(strings.Repeat("word ", 15)+"\n", 200)
	_, err := io.WriteString(y.master, pasteBegins+long+pasteEnds+enter)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, y.master) }()
	var r reading
	require.NoError(t, y.readings.Decode(&r))
	require.Equal(t, long, r.Text)
}

// Ctrl-C drops the line, and the next message is as it would be anyhow.
func TestCtrlC(t *testing.T) {
	y := start(t)
	require.Equal(t, reading{Text: "half a mess", Err: context.Canceled.Error()}, y.types("half a mess\x03"))
	require.Equal(t, reading{Err: context.Canceled.Error()}, y.types("\x03"))
	require.Equal(t, reading{Text: "whole"}, y.types("whole"+enter))
}

// A terminal is left as it was found, also during a Read.
func TestRestore(t *testing.T) {
	y := start(t)
	require.Nil(t, current().settings, "the standard input of tests is no terminal")
	read := func() *syscall.Termios {
		s := &syscall.Termios{}
		require.True(t, control(y.terminal, syscall.TCGETS, s))
		return s
	}
	y.ready()
	raw := read()
	require.Zero(t, raw.Lflag&syscall.ICANON)
	_, err := io.WriteString(y.master, "leave"+enter)
	require.NoError(t, err)
	y.ready()
	require.NoError(t, y.leave.Close())
	y.await("\x1b[?2004l\r\n")
	after := read()
	require.NotZero(t, after.Lflag&syscall.ICANON)
	require.NotZero(t, after.Lflag&syscall.ECHO)
	require.NotZero(t, after.Lflag&syscall.ISIG)
}

// There is no editor where the streams are no terminal, and where it cannot move its cursor.
func TestNoEditor(t *testing.T) {
	require.Nil(t, New(strings.NewReader(""), io.Discard))
	y := start(t, "TERM=dumb")
	var r reading
	require.NoError(t, y.readings.Decode(&r))
	require.Equal(t, reading{Err: "no editor"}, r)
}
