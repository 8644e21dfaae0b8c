//go:build linux

package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/pty"
)

// onTerminal runs amkc with a terminal of 80 columns for stderr, and returns what was written to it and to stdout.
func onTerminal(t *testing.T, args ...string) (stderr, stdout string) {
	t.Helper()
	master, terminal := pty.Open(t)
	seen := make(chan string)
	go func() {
		var all bytes.Buffer
		_, _ = all.ReadFrom(master) // ends with an error when the other side is closed
		seen <- all.String()
	}()
	var out bytes.Buffer
	code := Main(args, strings.NewReader(""), &out, terminal)
	terminal.Close()
	stderr = <-seen
	require.Zero(t, code, stderr)
	return stderr, out.String()
}

// Long work shows how far it is on a terminal, in one line that is gone in the end, and nowhere else.
func TestProgressOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	model := "../../testdata/models/zoo/llama-gqa"
	dir := t.TempDir()
	build := filepath.Join(dir, "build")
	works := [][]string{
		{"compile", model, "-o", build, "--target", "l4", "--no-build"},
		{"pack", model, "-o", filepath.Join(dir, "w.safetensors")},
		{"verify", build},
		{"run", model, "--ids", "1,2,3", "--max-tokens", "4", "--device", "ref"},
		{"logits", model, "--ids", "1,2,3", "-o", filepath.Join(dir, "l.npy"), "--device", "ref"},
		{"quality", model, "--against", model, "--ids", "1,2,3", "--greedy", "2", "--device", "ref"},
	}
	for i, says := range []string{"packing weights: ", "packing weights: ", "reading weights.safetensors: ",
		"decoding: 1 of 4 tokens", "reading tokens: 0 of 3 tokens", "predicting: 0 of 2 tokens"} {
		args := works[i]
		t.Run(args[0], func(t *testing.T) {
			stderr, stdout := onTerminal(t, args...)
			require.Contains(t, stderr, says)
			require.NotContains(t, stdout, "\x1b")
			require.NotContains(t, stderr, "\x1b[1", "NO_COLOR is set")
			require.Empty(t, onLastLine(stderr))
			for _, quiet := range []string{"--quiet", "--json"} {
				stderr, _ = onTerminal(t, append(args, quiet)...)
				require.NotContains(t, stderr, "\x1b", quiet)
			}
			t.Setenv("TERM", "dumb")
			stderr, _ = onTerminal(t, args...)
			require.NotContains(t, stderr, "\x1b", "a line that cannot be rewritten is not written")
			code, _, piped := amkc(args...)
			require.Zero(t, code, piped)
			require.NotContains(t, piped, "\x1b")
			require.NotContains(t, piped, "\r")
		})
	}
}

// onLastLine is what a terminal shows on the line of the cursor.
func onLastLine(written string) string {
	line := written[strings.LastIndexByte(written, '\n')+1:]
	if i := strings.LastIndex(line, "\x1b[K"); i >= 0 {
		return line[i+len("\x1b[K"):]
	}
	return line
}
