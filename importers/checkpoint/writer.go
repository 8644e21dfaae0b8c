package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// Align is the alignment in bytes of every tensor that a Writer writes, counted from the start of the file: enough for
// bulk copies on any device. The format permits any padding of the header, but no holes between tensors, so each size
// must be a multiple of Align as well: callers round the shape of a tensor up, and write the padding.
const Align = 256

// A Writer writes one safetensors file: declare all tensors, append their bytes in the order of the declaration, then
// Close. Until then, and after any error, an existing file at the target is unchanged (see package outfile). After an
// error the written data is discarded, and every further call returns the same error.
type Writer struct {
	path    string        // the target
	out     *outfile.File // nil once it is renamed or aborted
	file    sink          // the same
	buffer  *bufio.Writer
	specs   []Spec
	sizes   []int64
	current int   // index of the tensor that is being written
	written int64 // bytes of it
	err     *diag.Diagnostic
}

// A sink is the part of *os.File that a Writer needs; tests put one in that fails.
type sink interface {
	Write([]byte) (int, error)
	Sync() error
}

// NewWriter starts the file at path, with the tensors of specs in that order and metadata, if not empty, as
// __metadata__. The same arguments give the same bytes. Call Close to finish or Abort to discard the file; a deferred
// Abort is harmless after Close. Errors: AMK1026, AMK1014 to AMK1016 for a bad declaration, AMK1030 if writing fails.
func NewWriter(path string, specs []Spec, metadata map[string]string) (*Writer, error) {
	return newWriter(path, specs, metadata, func(f sink) sink { return f })
}

func newWriter(path string, specs []Spec, metadata map[string]string, wrap func(sink) sink) (*Writer, error) {
	w := &Writer{path: path, specs: slices.Clone(specs)}
	head, err := w.declare(metadata)
	if err != nil {
		return nil, err
	}
	out, bad := outfile.Create(path)
	if bad != nil {
		return nil, diag.Errorf(codeWrite, path, "cannot create the file: %s", infile.Reason(bad))
	}
	w.out, w.file = out, wrap(out)
	w.buffer = bufio.NewWriterSize(w.file, 1<<20)
	if _, bad := w.buffer.Write(head); bad != nil {
		return nil, w.fail(diag.Errorf(codeWrite, path, "cannot write the header: %s", infile.Reason(bad)))
	}
	return w, nil
}

// declare checks the tensors, fills in their sizes and returns the bytes of the file up to the data.
func (w *Writer) declare(metadata map[string]string) ([]byte, *diag.Diagnostic) {
	if err := checkNames(w.specs); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	separator := "{"
	member := func(name string) {
		text.WriteString(separator)
		writeString(&text, name)
		text.WriteByte(':')
		separator = ","
	}
	if len(metadata) > 0 {
		member("__metadata__")
		separator = "{"
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return nil, diag.Errorf(codeSpec, w.path, "metadata %q is not UTF-8", key)
			}
			member(key)
			writeString(&text, metadata[key])
		}
		text.WriteByte('}')
	}
	end := int64(0)
	for _, s := range w.specs {
		pos := "tensor " + s.Name
		size, err := s.bytes(pos)
		if err != nil {
			return nil, err
		}
		if size%Align != 0 {
			return nil, diag.Errorf(codeSpec, pos, "%s %v takes %d bytes; a multiple of %d is needed", s.DType, s.Shape,
				size, Align)
		}
		if end+size < 0 {
			return nil, diag.Errorf(codeShape, pos, "the file would be larger than 2^63 bytes")
		}
		shape, _ := json.Marshal(append([]int{}, s.Shape...)) // a slice of integers always marshals; never null
		member(s.Name)
		fmt.Fprintf(&text, `{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, s.DType, shape, end, end+size)
		end += size
		w.sizes = append(w.sizes, size)
	}
	if separator == "{" {
		text.WriteByte('{')
	}
	text.WriteByte('}')
	for (lengthBytes+text.Len())%Align != 0 {
		text.WriteByte(' ')
	}
	if text.Len() > maxHeaderSize {
		return nil, diag.Errorf(codeHeaderSize, w.path, "the header would have %d bytes", text.Len())
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(text.Len())), text.Bytes()...), nil
}

// Append adds bytes to the tensor of that name, which must be the one that the last call wrote to, or, once that is
// complete, the next one that is not empty. Errors: AMK1030, AMK1031.
func (w *Writer) Append(name string, p []byte) error {
	if w.err != nil {
		return w.err
	}
	w.skipComplete()
	pos := "tensor " + name
	switch {
	case w.out == nil:
		return diag.Errorf(codeWriteOrder, pos, "the file is finished")
	case w.current == len(w.specs):
		return w.fail(diag.Errorf(codeWriteOrder, pos, "all tensors are complete"))
	case w.specs[w.current].Name != name:
		return w.fail(diag.Errorf(codeWriteOrder, pos, "it is the turn of %s, which has %d of %d bytes",
			w.specs[w.current].Name, w.written, w.sizes[w.current]))
	case int64(len(p)) > w.sizes[w.current]-w.written:
		return w.fail(diag.Errorf(codeWriteOrder, pos, "%d bytes follow %d, of %d", len(p), w.written,
			w.sizes[w.current]))
	}
	if _, err := w.buffer.Write(p); err != nil {
		return w.fail(diag.Errorf(codeWrite, w.path, "cannot write %s: %s", name, infile.Reason(err)))
	}
	w.written += int64(len(p))
	return nil
}

// skipComplete moves on past tensors that have all their bytes.
func (w *Writer) skipComplete() {
	for w.current < len(w.specs) && w.written == w.sizes[w.current] {
		w.current, w.written = w.current+1, 0
	}
}

// Close finishes the file and renames it to its target. Errors: AMK1030, and AMK1031 if bytes are missing.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.out == nil {
		return nil
	}
	if w.skipComplete(); w.current < len(w.specs) {
		return w.fail(diag.Errorf(codeWriteOrder, "tensor "+w.specs[w.current].Name, "%d of %d bytes were written",
			w.written, w.sizes[w.current]))
	}
	for _, step := range []func() error{w.buffer.Flush, w.file.Sync, w.out.Commit} {
		if err := step(); err != nil {
			return w.fail(diag.Errorf(codeWrite, w.path, "cannot finish the file: %s", infile.Reason(err)))
		}
	}
	w.out = nil
	return nil
}

// Abort closes and removes the temporary file. After Close or an error it does nothing.
func (w *Writer) Abort() {
	if w.out != nil {
		w.fail(diag.Errorf(codeWrite, w.path, "given up"))
	}
}

func (w *Writer) fail(err *diag.Diagnostic) error {
	w.err = err
	w.out.Release()
	w.out = nil
	return err
}

func validName(name string) bool {
	return name != "" && name != "__metadata__" && utf8.ValidString(name)
}

// writeString writes a JSON string and leaves <, > and & as they are.
func writeString(b *bytes.Buffer, s string) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	encoder.Encode(s)       // a string always encodes
	b.Truncate(b.Len() - 1) // the newline that Encode adds
}
