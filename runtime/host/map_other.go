//go:build !linux

package host

import (
	"io"
	"os"
)

// mapFile reads the file: the driver that this package needs exists on Linux, where the file is mapped instead.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}
