package checkpoint

import (
	"os"
	"syscall"
)

// openRegion maps the file, and takes it over. Where mapping is refused, as some network and user-space file systems
// do, the file is read instead.
func openRegion(file *os.File, size int64) region {
	if size <= 0 || int64(int(size)) != size {
		return reader{file}
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return reader{file}
	}
	file.Close() // the mapping stays
	return &memory{data: data, unmap: syscall.Munmap}
}
