package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
	"amkc/internal/pty"
)

// In a terminal messages are edited and pasted, earlier ones come back, and thinking is turned on and off. Ctrl-C stops
// the answer and not the program, which the second one at the prompt ends. A conversation beyond the context goes on.
func TestChatOnATerminal(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(model, os.DirFS("../../testdata/models/pycoder-5m")))
	template := "{% for m in messages %}# {{ m.role }}: {{ m.content }}\n{% endfor %}" +
		"{{ 'x' if enable_thinking else 'y' * 40 }}# assistant: "
	require.NoError(t, os.WriteFile(filepath.Join(model, "chat_template.jinja"), []byte(template), 0o644))
	master, terminal := pty.Open(t)
	cmd := exec.Command("amkc", "chat", model, "--device", "ref", "--stats", "--greedy", "--think", "--max-seq", "160")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "INPUTRC=/dev/null")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var shown strings.Builder
	const prompt = "\x1b[?2004h> "
	tokens := func() int { // of the prompt
		stats := readUntil(t, master, " read ")
		shown.WriteString(stats)
		var kept, read int
		_, err := fmt.Sscanf(stats[strings.LastIndex(stats, "\n")+1:], "%d tokens kept, %d read", &kept, &read)
		require.NoError(t, err, stats)
		return kept + read
	}
	steps := func(all ...[2]string) {
		t.Helper()
		for _, step := range all {
			shown.WriteString(readUntil(t, master, step[0]))
			_, err := master.WriteString(step[1])
			require.NoError(t, err)
		}
	}
	steps([2]string{prompt, "/help\r"}, [2]string{"/no-think", ""}, [2]string{prompt, "/clear\r"},
		[2]string{prompt, "hi there\r"}, [2]string{"# ", "\x03"}, // of the answer
		[2]string{"stopped\r\n", ""})
	thinking := tokens()
	steps([2]string{prompt, "/clear\r"}, [2]string{prompt, "/no-think\r"},
		[2]string{prompt, "\x1b[A\x1b[A\x1b[A\r"}, // hi there, of the history
		[2]string{"def ", "\x03"}, [2]string{"stopped\r\n", ""})
	require.Greater(t, tokens(), thinking, "the template writes more where the model is not to think")
	steps([2]string{prompt, "half a mess\x03"},
		[2]string{prompt, "\x1b[200~def f(😀):\r\r    return 1\x1b[201~\x1b[D2\r"}, [2]string{"\r\n", ""})
	for more := true; more; { // answers fill the context
		screen := readUntil(t, master, " kept, ")
		shown.WriteString(screen)
		more = !strings.Contains(screen, "positions is full: the oldest ")
		steps([2]string{prompt, "/stats\r"}, [2]string{prompt, "again 日本語\r"})
	}
	steps([2]string{" kept, ", ""}, [2]string{prompt, "\x03"},
		[2]string{"Ctrl-C again, or Ctrl-D, ends the conversation\r\n", ""}, [2]string{prompt, "\x03"})
	require.NoError(t, cmd.Wait())
	require.Contains(t, shown.String(), "return 21", "one key to the left of what was pasted")
	for _, part := range strings.Split(shown.String(), "\x1b[?2004l")[1:] { // what the editor has not written
		plain, _, _ := strings.Cut(part, prompt)
		plain = strings.NewReplacer("\r\n", "\n", "\r\x1b[K", "").Replace(plain) // the line that shows progress
		require.Empty(t, injection.Raw(plain))
	}
}

// readUntil reads from a terminal as far as a text.
func readUntil(t *testing.T, master *os.File, text string) string {
	t.Helper()
	require.NoError(t, master.SetReadDeadline(time.Now().Add(30*time.Second)))
	var b []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(b), text); b = append(b, one[0]) {
		_, err := master.Read(one)
		require.NoError(t, err, "waiting for %q after %q", text, b)
	}
	return string(b)
}
