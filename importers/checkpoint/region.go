package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// A region is the read-only contents of an open file. Regions may be read from several goroutines at once, but not
// while one closes them.
type region interface {
	// each calls fn with consecutive blocks that together are the bytes [off, off+n), which must be inside the
	// region. A block is only valid during the call; all but the last are a multiple of 8 bytes long, so that no
	// element is split.
	each(off, n int64, fn func(block []byte)) error
	// pieces fills dst with blocks of size bytes, each stride bytes after the one before, all inside the region.
	pieces(dst []byte, off, size, stride int64) error
	// view returns the bytes [off, off+n) without a copy, valid until close, or nil if this region has to read them.
	view(off, n int64) []byte
	close() error
}

var errClosed = errors.New("the checkpoint is closed")

// A memory region is a mapped file.
type memory struct {
	data  []byte
	unmap func([]byte) error
}

// each turns a memory fault, which is how the system reports that a mapped file was truncated or its disk failed, into
// an error.
func (m *memory) each(off, n int64, fn func([]byte)) (err error) {
	if m.data == nil {
		return errClosed
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("the file changed or failed while it was mapped: %v", fault)
		default:
			panic(fault)
		}
	}()
	fn(m.data[off : off+n])
	return nil
}

func (m *memory) pieces(dst []byte, off, size, stride int64) error {
	span := (int64(len(dst))/size-1)*stride + size
	return m.each(off, span, func(block []byte) {
		for at := int64(0); len(dst) > 0; at += stride {
			dst = dst[copy(dst[:size], block[at:]):]
		}
	})
}

func (m *memory) view(off, n int64) []byte {
	if m.data == nil {
		return nil
	}
	return m.data[off : off+n : off+n]
}

func (m *memory) close() error {
	data := m.data
	m.data = nil
	if data == nil {
		return nil
	}
	return m.unmap(data)
}

// blockBytes is what a reader region holds at a time.
const blockBytes = 64 << 10

// A reader region reads with system calls, for systems and file systems that do not map files.
type reader struct{ file *os.File }

func (r reader) each(off, n int64, fn func([]byte)) error {
	block := make([]byte, min(n, blockBytes))
	for n > 0 {
		part := block[:min(n, blockBytes)]
		if _, err := r.file.ReadAt(part, off); err != nil {
			return err
		}
		fn(part)
		off, n = off+int64(len(part)), n-int64(len(part))
	}
	return nil
}

func (r reader) pieces(dst []byte, off, size, stride int64) error {
	for ; len(dst) > 0; dst, off = dst[size:], off+stride {
		if _, err := r.file.ReadAt(dst[:size], off); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) view(int64, int64) []byte { return nil }

func (r reader) close() error {
	if err := r.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// copyOut fills dst from offset off of a region; name is the file in errors.
func copyOut(r region, name string, dst []byte, off int64) *diag.Diagnostic {
	if err := r.each(off, int64(len(dst)), func(block []byte) { dst = dst[copy(dst, block):] }); err != nil {
		return diag.Errorf(codeRead, name, "cannot read: %s", infile.Reason(err))
	}
	return nil
}
