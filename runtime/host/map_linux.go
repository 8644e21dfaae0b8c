package host

import (
	"os"
	"syscall"
)

// mapFile maps a whole file, read only, and returns its bytes and what unmaps them. Pages are read when they are first
// touched and belong to the page cache, so a file larger than memory is fine.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}
