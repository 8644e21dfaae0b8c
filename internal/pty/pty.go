//go:build linux

// Package pty gives tests a terminal.
package pty

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Open returns both ends of a pseudo-terminal of 80 columns: what is written to the second can be read from the first.
// The test is skipped where there are none.
func Open(t testing.TB) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	raw, err := master.SyscallConn() // Fd would make reading block beyond its deadline
	require.NoError(t, err)
	control := func(request uintptr, arg unsafe.Pointer) {
		var errno syscall.Errno
		require.NoError(t, raw.Control(func(fd uintptr) {
			_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg))
		}))
		require.Zero(t, errno)
	}
	var locked, number int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := struct{ rows, columns, x, y uint16 }{24, 80, 0, 0}
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}
