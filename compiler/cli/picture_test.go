package cli

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/browser"
	"amkc/internal/pty"
)

// The picture of chat in the documentation is what a terminal shows of it: every character is compared.
func TestPictureOfChatInABrowser(t *testing.T) {
	master, terminal := pty.Open(t)
	command := []string{"chat", "testdata/models/pycoder-5m", "--device", "ref", "--greedy", "--max-tokens", "40"}
	cmd := exec.Command("amkc", command...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "INPUTRC=/dev/null")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	const prompt = "\x1b[?2004h> "
	shown := "\x1b[32m$\x1b[m amkc " + strings.Join(command, " ") + "\r\n"
	for _, typed := range []string{
		"\x1b[200~class Point:\r    \"\"\"A point in the plane.\"\"\"\x1b[201~\r", "def is_empty(x):\r", "/help\r"} {
		shown += readUntil(t, master, prompt)
		_, err := master.WriteString(typed)
		require.NoError(t, err)
	}
	shown += readUntil(t, master, prompt)
	_, err := master.WriteString("\x04")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	b, text := browser.OpenTerminal(t, shown, 80)
	b.Picture("../../docs/img/chat.png", *update, text, strings.TrimSpace)
	require.Empty(t, b.Faults)
}
