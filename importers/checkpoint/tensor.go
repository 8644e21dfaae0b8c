package checkpoint

import (
	"bytes"
	"slices"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// A Tensor is one tensor of a checkpoint. Its data is read on demand. Several goroutines may read it concurrently.
type Tensor struct {
	Name  string
	DType DType
	Shape []int // outermost dimension first; empty for a scalar. Not to be modified
	size  int64 // bytes
	data  source
}

// A source gives the data of one tensor. Arguments are within the tensor: callers have checked them.
type source interface {
	floats(dst []float32, first int64) *diag.Diagnostic // elements [first, first+len(dst)), of a dtype in decoders
	bytes(dst []byte, off int64) *diag.Diagnostic       // bytes [off, off+len(dst))
	pieces(dst []byte, off, size, stride int64) *diag.Diagnostic
	view(n int64) []byte // the first n bytes without a copy, or nil if that cannot be
}

// Size is the number of bytes of the data.
func (t Tensor) Size() int64 { return t.size }

// Rows is the outermost dimension, 1 for a scalar.
func (t Tensor) Rows() int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[0]
}

// RowLen is the number of elements of a row: the product of all dimensions but the outermost. The rows of a vector have
// one element each.
func (t Tensor) RowLen() int {
	n := 1
	for _, d := range t.Shape[min(1, len(t.Shape)):] {
		n *= d
	}
	return n
}

// HasValues reports whether ReadF32 gives the elements: those of F32, F16, BF16, and of the blocks of GGUF.
func (t Tensor) HasValues() bool {
	_, floats := decoders[t.DType]
	return floats || t.InBlocks()
}

// InBlocks reports whether elements are stored in the blocks of GGUF.
func (t Tensor) InBlocks() bool {
	b, ok := t.data.(blockRows)
	return ok && b.kind.Elements > 1
}

// ReadRowsF32 widens rows [row0, row1) into dst, which must have room for (row1-row0) × RowLen elements. It allocates
// nothing of that size, so that a caller who reads blocks of rows needs memory for one block. Errors: AMK1024 for a
// dtype other than F32, F16 and BF16, AMK1006 if the file fails, AMK1025 for rows that do not exist.
func (t Tensor) ReadRowsF32(dst []float32, row0, row1 int) error {
	if row0 < 0 || row1 < row0 || row1 > t.Rows() {
		return diag.Errorf(codeRows, "tensor "+t.Name, "rows [%d, %d) of %d", row0, row1, t.Rows())
	}
	n := (row1 - row0) * t.RowLen()
	if len(dst) < n {
		return diag.Errorf(codeRows, "tensor "+t.Name, "rows [%d, %d) have %d elements, the buffer %d", row0, row1, n,
			len(dst))
	}
	return t.ReadF32(dst[:n], row0*t.RowLen())
}

// ReadF32 widens elements [first, first+len(dst)) of the row-major order, which must exist, as ReadRowsF32 does.
func (t Tensor) ReadF32(dst []float32, first int) error {
	if !t.HasValues() {
		return diag.Errorf(codeDecode, "tensor "+t.Name, "dtype %s; a weight must be F32, F16 or BF16", t.DType)
	}
	if all := t.Rows() * t.RowLen(); first < 0 || first > all-len(dst) {
		return diag.Errorf(codeRows, "tensor "+t.Name, "elements [%d, %d) of %d", first, first+len(dst), all)
	}
	if err := t.data.floats(dst, int64(first)); err != nil {
		return err
	}
	return nil
}

// ReadPieces fills dst with pieces of n bytes of the data, from byte off on, each stride bytes after the one before, as
// for a few columns of a matrix. len(dst) is a multiple of size. Errors: AMK1006 if the file fails, AMK1025 for bytes
// that do not exist.
func (t Tensor) ReadPieces(dst []byte, off, size, stride int) error {
	if len(dst) == 0 {
		return nil
	}
	n, room := 0, t.size-int64(off)-int64(size) // after the first piece
	if size > 0 {
		n = len(dst) / size
	}
	if n*size != len(dst) || off < 0 || stride < 0 || room < 0 || stride > 0 && int64(n-1) > room/int64(stride) {
		return diag.Errorf(codeRows, "tensor "+t.Name, "%d bytes in pieces of %d from byte %d on, %d apart, of %d",
			len(dst), size, off, stride, t.size)
	}
	if err := t.data.pieces(dst, int64(off), int64(size), int64(stride)); err != nil {
		return err
	}
	return nil
}

// Raw returns the bytes of the data, little-endian and row-major. For a mapped file they are the file's own pages: they
// must not be modified, and not be used after Close. Otherwise they are a copy of the whole tensor.
func (t Tensor) Raw() ([]byte, error) {
	if view := t.data.view(t.size); view != nil {
		return view, nil
	}
	raw := make([]byte, t.size)
	if err := t.data.bytes(raw, 0); err != nil {
		return nil, err
	}
	return raw, nil
}

// SameBits reports whether two tensors have the same dtype, the same shape and the same bytes, block by block.
func (t Tensor) SameBits(u Tensor) (bool, error) {
	if t.DType != u.DType || t.size != u.size || !slices.Equal(t.Shape, u.Shape) {
		return false, nil
	}
	a, b := make([]byte, min(t.size, blockBytes)), make([]byte, min(t.size, blockBytes))
	for off := int64(0); off < t.size; off += blockBytes {
		n := min(t.size-off, blockBytes)
		if err := t.data.bytes(a[:n], off); err != nil {
			return false, err
		}
		if err := u.data.bytes(b[:n], off); err != nil {
			return false, err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// A stored source is a tensor in a file.
type stored struct {
	region region
	file   string // for diagnostics
	dtype  DType
	at     int64 // of its first byte in the region
}

func (s stored) floats(dst []float32, first int64) *diag.Diagnostic {
	d := decoders[s.dtype]
	err := s.region.each(s.at+first*d.size, int64(len(dst))*d.size, func(block []byte) {
		d.decode(dst, block)
		dst = dst[int64(len(block))/d.size:]
	})
	if err != nil {
		return diag.Errorf(codeRead, s.file, "cannot read: %s", infile.Reason(err))
	}
	return nil
}

func (s stored) bytes(dst []byte, off int64) *diag.Diagnostic {
	return copyOut(s.region, s.file, dst, s.at+off)
}

func (s stored) pieces(dst []byte, off, size, stride int64) *diag.Diagnostic {
	if err := s.region.pieces(dst, s.at+off, size, stride); err != nil {
		return diag.Errorf(codeRead, s.file, "cannot read: %s", infile.Reason(err))
	}
	return nil
}

func (s stored) view(n int64) []byte { return s.region.view(s.at, n) }
