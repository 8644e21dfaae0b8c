package cli

import (
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

// In a terminal there is a prompt, Ctrl-C stops the answer and not the program, and the second one at the prompt ends
// it.
func TestChatOnATerminal(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(model, os.DirFS("../../testdata/models/pycoder-5m")))
	template := "{% for m in messages %}# {{ m.role }}: {{ m.content }}\n{% endfor %}# assistant: "
	require.NoError(t, os.WriteFile(filepath.Join(model, "chat_template.jinja"), []byte(template), 0o644))
	master, terminal := pty.Open(t)
	cmd := exec.Command("amkc", "chat", model, "--device", "ref", "--stats")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var shown strings.Builder
	for _, step := range []struct{ await, typed string }{
		{"> ", "hi there\n"},
		{"# ", "\x03"}, // of the answer
		{"stopped\r\n", ""},
		{" kept, ", ""},
		{"> ", "\x03"},
		{"Ctrl-C again, or Ctrl-D, ends the conversation\r\n> ", "\x03"},
	} {
		shown.WriteString(readUntil(t, master, step.await))
		_, err := master.WriteString(step.typed)
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Wait())
	plain := strings.NewReplacer("\r\n", "\n", "\r\x1b[K", "").Replace(shown.String()) // the line that shows progress
	require.Empty(t, injection.Raw(plain))
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
