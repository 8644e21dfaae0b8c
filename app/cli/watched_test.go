//go:build linux

package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/cli"
	"amkc/internal/pty"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// onTerminal runs the command line of a build with one terminal for stdout and stderr, and returns what it shows.
func onTerminal(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	master, terminal := pty.Open(t)
	seen := make(chan string)
	go func() {
		var all bytes.Buffer
		_, _ = all.ReadFrom(master) // ends with an error when the other side is closed
		seen <- all.String()
	}()
	l := cli.Launcher{Model: hosttest.Facts().Model, Dir: dir}
	code := l.Main(args, strings.NewReader(stdin), terminal, terminal)
	terminal.Close()
	all := <-seen
	require.Zero(t, code, all)
	return all
}

// A long prompt shows how far it is, in a line that is gone before the prompt and its answer are printed on the same
// terminal. A short one shows nothing.
func TestLongPromptsOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	dir := build(t, "", func(f *host.Facts) { f.Prompt = 16 })
	const gone = "\r\x1b[K"
	const short = "def fibonacci(n):"
	long := strings.Repeat(short+"\n    ", 6) + "return n"
	for name, choice := range map[string][]string{"on the GPU": nil, "by the host": {"--top-k", "900", "--temperature",
		"1", "--seed", "3"}} {
		t.Run(name, func(t *testing.T) {
			for _, prompt := range []string{short, long} {
				args := append([]string{"run", "--prompt", prompt, "--max-tokens", "3", "--ignore-eos"}, choice...)
				all := onTerminal(t, dir, "", args...)
				_, alone, _ := run(t, dir, "", args...)
				answer := all[strings.LastIndex(all, gone)+len(gone):]
				require.True(t, strings.HasPrefix(answer, strings.ReplaceAll(prompt, "\n", "\r\n")), "%q", all)
				require.Equal(t, strings.Count(alone, "\n"), strings.Count(answer, "\n"))
				require.Equal(t, prompt == long, strings.Contains(all, gone+"reading tokens: 0 of "), "%q", all)
			}
		})
	}
	ids := strings.TrimSuffix(strings.Repeat("5,", 100), ",")
	all := onTerminal(t, dir, "", "run", "--ids", ids, "--max-tokens", "1")
	require.Contains(t, all, gone+"reading tokens: 0 of 100 tokens"+gone)
	code, _, stderr := run(t, dir, "", "run", "--ids", ids, "--max-tokens", "1")
	require.Zero(t, code)
	require.Empty(t, stderr, "no terminal")
}
