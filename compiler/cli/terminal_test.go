package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
)

// openTerminal returns both ends of a pseudo terminal: what is written to the second can be read from the first.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	var number, locked uint32
	for _, call := range []struct {
		request uintptr
		arg     *uint32
	}{{syscall.TIOCGPTN, &number}, {syscall.TIOCSPTLCK, &locked}} {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), call.request, uintptr(unsafe.Pointer(call.arg)))
		require.Zero(t, errno)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

// A document is as it is in a pipe, and shown on a terminal; a result is always shown.
func TestDocumentsOnATerminal(t *testing.T) {
	hostile := "\x1b[2Jmodel\r\u202etext\n"
	var pipe strings.Builder
	c := &call{stdout: &pipe}
	require.NoError(t, c.print(hostile))
	require.Equal(t, hostile, pipe.String())
	pipe.Reset()
	require.NoError(t, c.printf("%s", hostile))
	require.Equal(t, `\u001b[2Jmodel\r\u202etext`+"\n", pipe.String())

	master, terminal := openTerminal(t)
	c = &call{stdout: terminal}
	require.NoError(t, c.print(hostile))
	require.NoError(t, c.printf("%s", hostile))
	require.NoError(t, master.SetReadDeadline(time.Now().Add(10*time.Second)))
	want := 2 * len(`\u001b[2Jmodel\r\u202etext`+"\r\n")
	shown := make([]byte, want)
	_, err := io.ReadFull(master, shown)
	require.NoError(t, err)
	require.Empty(t, injection.Raw(strings.ReplaceAll(string(shown), "\r\n", "\n")))
}
