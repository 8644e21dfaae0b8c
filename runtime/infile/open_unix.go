//go:build unix

package infile

import (
	"os"
	"syscall"
)

// openFlags: without O_NONBLOCK a pipe that nobody writes to would be waited for.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC
