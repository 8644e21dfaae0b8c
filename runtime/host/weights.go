package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// weights is an open weights.safetensors.
type weights struct {
	data  []byte // the data section, which is what the kernels address
	close func() error
}

// openWeights maps the file and finds its data section. The names in its header are not looked at: the offsets that the
// kernels use were fixed when they were emitted, and the size must be the one they expect.
func openWeights(path string, want int64) (_ *weights, err error) {
	f, size, err := infile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &BuildError{Path: path, What: "the packed weights are missing",
			Remedy: "make them with amkc pack MODEL -o " + path}
	}
	if err != nil {
		return nil, &BuildError{Path: path, What: "the packed weights cannot be read", Err: err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	broken := func(format string, args ...any) error {
		return &BuildError{Path: path, What: fmt.Sprintf(format, args...),
			Remedy: "pack them again with amkc pack MODEL -o " + path}
	}
	if size < 8 {
		return nil, broken("%d bytes are not a safetensors file", size)
	}
	data, unmap, err := mapFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	header := binary.LittleEndian.Uint64(data)
	if header > uint64(size)-8 {
		err := broken("its header claims %d bytes of the %d in the file", header, size)
		return nil, errors.Join(err, unmap())
	}
	data = data[8+header:]
	if int64(len(data)) != want {
		err := broken("it holds %d bytes of weights, and the kernel was compiled for %d", len(data), want)
		return nil, errors.Join(err, unmap())
	}
	return &weights{data, unmap}, nil
}

// uploadChunk is how much is copied between two looks at the context.
const uploadChunk = 256 << 20

// upload copies the data section to the GPU.
func (w *weights) upload(ctx context.Context, d *driver.Device, dst driver.Ptr, progress Progress) error {
	for at := 0; at < len(w.data); at += uploadChunk {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		chunk := w.data[at:min(at+uploadChunk, len(w.data))]
		var report driver.Progress
		if progress != nil {
			report = func(done, _ int) { progress("loading weights", int64(at+done), int64(len(w.data))) }
		}
		if err := d.CopyHtoD(dst+driver.Ptr(at), chunk, report); err != nil {
			return fmt.Errorf("loading weights: %w", err)
		}
	}
	return nil
}
