package passes

import (
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/checkpoint"
)

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

// read fills dst with the rows [row0, row1), rounded to the buffer's dtype. Rows that follow one another in a tensor
// are read together.
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
			return diag.Errorf(codeOverflow, "tensor "+p.Key,
				"element %s is %g, which %s cannot hold; want --dtype bf16 or fp32",
				fmt.Sprint([]int{row + i/r.cols, i % r.cols}), v, r.buf.DType)
		}
		values[i] = rounded
	}
	return nil
}

// matrixOf returns the rows and columns of a buffer. A vector is one column of as many rows as it has elements.
func matrixOf(b *ir.Buffer) (rows, cols int) {
	if len(b.Shape) < 2 {
		return b.Numel(), 1
	}
	rows = b.Shape[0]
	return rows, b.Numel() / max(1, rows)
}
