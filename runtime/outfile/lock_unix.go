//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package outfile

import (
	"os"
	"syscall"
)

const openLeftFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// lock takes the lock of a file if it is free. The lock is the open file's, and ends when that is closed or the
// process ends.
func lock(f *os.File) lockState {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return locked
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return lockedElsewhere
		default:
			return lockUnknown
		}
	}
}
