package passes

import (
	"fmt"
	"io"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/half"
	"amkc/passes/checkpoint"
)

// Weights supplies the contents of a program's WEIGHT and CONST buffers from a checkpoint: as float32 rows in the order
// of the buffer, or packed in its layout. Values are rounded to the dtype of the buffer, to nearest, ties to even, in both
// forms. It reads by blocks of rows, so that no more than a block is held; it may be used from several goroutines at once.
type Weights struct {
	checkpoint *checkpoint.Checkpoint
	rope       ir.Rope
}

// NewWeights supplies from a checkpoint, which must stay open. The rotary frequencies are those of the graph.
func NewWeights(c *checkpoint.Checkpoint, rope ir.Rope) *Weights {
	return &Weights{checkpoint: c, rope: rope}
}

// Rows and columns of a buffer. A vector is one column of as many rows as it has elements.
func matrixOf(b *ir.Buffer) (rows, cols int) {
	if len(b.Shape) < 2 {
		return b.Numel(), 1
	}
	rows = b.Shape[0]
	return rows, b.Numel() / max(1, rows)
}

// Floats returns all elements of a buffer (member i, if it is a family) in row-major order.
func (w *Weights) Floats(b *ir.Buffer, i int) ([]float32, error) {
	r, err := w.open(b, i)
	if err != nil {
		return nil, err
	}
	out := make([]float32, b.Numel())
	return out, r.read(out, 0, r.rows)
}

// Pack writes a buffer (member i, if it is a family) in its dtype and layout: Bytes of it, padding included, as zeros.
func (w *Weights) Pack(out io.Writer, b *ir.Buffer, i int) error {
	r, err := w.open(b, i)
	if err != nil {
		return err
	}
	block := packBlock{buf: b, cols: r.cols, size: b.DType.Bits() / 8}
	step := blockRows
	switch b.Layout.Kind {
	case ir.Tile8x32:
		block.pad = (r.cols + 31) / 32 * 32
	case ir.RowMajor:
		block.pad = r.cols
		step = max(blockRows, plainBlock/r.cols/blockRows*blockRows)
	default:
		return diag.Errorf(codeWeights, "buffer "+b.Name, "layout %s; weights are packed as rowmajor or tile8x32", b.Layout.Kind)
	}
	values := make([]float32, step*r.cols)
	bytes := make([]byte, step*block.pad*block.size)
	for row := 0; row < r.rows; row += step {
		n := min(step, r.rows-row)
		if err := r.read(values[:n*r.cols], row, row+n); err != nil {
			return err
		}
		if _, err := out.Write(block.pack(bytes, values[:n*r.cols], n)); err != nil {
			return err
		}
	}
	return nil
}

const (
	blockRows  = 8       // rows of a tile
	plainBlock = 1 << 16 // elements of a row-major block, about
)

// A packBlock lays blocks of rows out.
type packBlock struct {
	buf       *ir.Buffer
	cols, pad int // elements of a row, without and with padding
	size      int // bytes of an element
}

// pack fills dst with n rows and returns the part of it that they take.
func (p *packBlock) pack(dst []byte, values []float32, n int) []byte {
	if p.buf.Layout.Kind == ir.RowMajor {
		dst = dst[:len(values)*p.size]
		encode(p.buf.DType, dst, values)
		return dst
	}
	dst = dst[:blockRows*p.pad*p.size]
	clear(dst)
	const group = 8 // elements that a lane holds side by side
	for row := range n {
		for col := 0; col < p.cols; col += group {
			lane := row*4 + col%32/group
			at := ((col/32*32 + lane) * group) * p.size
			encode(p.buf.DType, dst[at:], values[row*p.cols+col:row*p.cols+min(p.cols, col+group)])
		}
	}
	return dst
}

func encode(d ir.DType, dst []byte, src []float32) {
	switch d {
	case ir.F16:
		half.EncodeF16(dst, src)
	case ir.BF16:
		half.EncodeBF16(dst, src)
	default:
		half.EncodeF32(dst, src)
	}
}

// A rowReader reads the rows of a buffer from the pieces it is made of.
type rowReader struct {
	buf        *ir.Buffer
	rows, cols int
	pieces     []rowPiece
}

// A rowPiece is a piece with the buffer's rows that it supplies.
type rowPiece struct {
	ir.Piece
	first, rows int
	tensor      checkpoint.Tensor
	values      []float32 // instead of a tensor
}

func (w *Weights) open(b *ir.Buffer, i int) (*rowReader, error) {
	r := &rowReader{buf: b}
	r.rows, r.cols = matrixOf(b)
	fail := func(format string, args ...any) error {
		return diag.Errorf(codeWeights, "buffer "+b.Name, format, args...)
	}
	if d := b.DType; d != ir.F32 && d != ir.F16 && d != ir.BF16 {
		return nil, fail("dtype %s; weights are F32, F16 or BF16", d)
	}
	next := 0
	for k, piece := range b.Pieces {
		p := rowPiece{Piece: piece, first: next}
		key, err := ir.ResolveKey(piece.Key, i)
		if err != nil {
			return nil, fail("%v", err)
		}
		p.Key = key
		cols := 1
		if key == invFreqKey {
			p.values, p.rows = w.rope.InvFreq, len(w.rope.InvFreq)
		} else {
			t, ok := w.checkpoint.Tensor(key)
			if !ok {
				return nil, fail("the checkpoint has no tensor %s", key)
			}
			p.tensor, p.rows, cols = t, t.Rows(), t.RowLen()
		}
		if cols != r.cols {
			return nil, fail("tensor %s has rows of %d elements; want %d", key, cols, r.cols)
		}
		switch {
		case piece.Order == ir.Pairs && (piece.Arg < 2 || piece.Arg%2 != 0 || p.rows%piece.Arg != 0):
			return nil, fail("tensor %s has %d rows, which are not heads of %d", key, p.rows, piece.Arg)
		case piece.Order == ir.Odd:
			even := len(r.pieces) > 0 && r.pieces[k-1].Order == ir.Even
			if !even || r.pieces[k-1].rows != p.rows {
				return nil, fail("tensor %s takes the odd rows; want an even piece of as many rows before it", key)
			}
			p.first = r.pieces[k-1].first
		}
		next += p.rows
		r.pieces = append(r.pieces, p)
	}
	if next != r.rows {
		return nil, fail("its pieces have %d rows; want %d", next, r.rows)
	}
	return r, nil
}

// source returns the piece that supplies a row, and its row there.
func (r *rowReader) source(row int) (*rowPiece, int) {
	for k := range r.pieces {
		p := &r.pieces[k]
		at := row - p.first
		switch p.Order {
		case ir.Even, ir.Odd:
			if at >= 0 && at < 2*p.rows && at%2 == int(p.Order-ir.Even) {
				return p, at / 2
			}
		case ir.Pairs:
			if at >= 0 && at < p.rows {
				head, k := at/p.Arg, at%p.Arg
				return p, head*p.Arg + k/2 + k%2*(p.Arg/2)
			}
		default:
			if at >= 0 && at < p.rows {
				return p, at
			}
		}
	}
	return nil, 0
}

// read fills dst with the rows [row0, row1), rounded to the buffer's dtype. Rows that follow one another in a tensor are
// read together.
func (r *rowReader) read(dst []float32, row0, row1 int) error {
	for row := row0; row < row1; {
		p, at := r.source(row)
		if p == nil {
			return diag.Errorf(codeWeights, "buffer "+r.buf.Name, "row %d is in no piece", row)
		}
		n := 1
		for row+n < row1 {
			if q, next := r.source(row + n); q != p || next != at+n {
				break
			}
			n++
		}
		part := dst[(row-row0)*r.cols : (row-row0+n)*r.cols]
		if p.values != nil {
			copy(part, p.values[at:at+n])
		} else if err := p.tensor.ReadRowsF32(part, at, at+n); err != nil {
			return err
		}
		if err := r.round(part, p, at); err != nil {
			return err
		}
		row += n
	}
	return nil
}

// round rounds values to the buffer's dtype. A finite value that becomes infinite is refused.
func (r *rowReader) round(values []float32, p *rowPiece, row int) error {
	if r.buf.DType == ir.F32 || modelDTypes[p.tensor.DType] == r.buf.DType && p.values == nil {
		return nil
	}
	for i, v := range values {
		rounded := roundTo(r.buf.DType, v)
		if math.IsInf(float64(rounded), 0) && !math.IsInf(float64(v), 0) {
			return diag.Errorf(codeOverflow, "tensor "+p.Key, "element %s is %g, which %s cannot hold; want --dtype bf16 or fp32",
				fmt.Sprint([]int{row + i/r.cols, i % r.cols}), v, r.buf.DType)
		}
		values[i] = rounded
	}
	return nil
}
