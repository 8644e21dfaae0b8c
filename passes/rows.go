package passes

import (
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/ir/transform"
	"amkc/passes/checkpoint"
)

// A rowReader reads the rows of a buffer from the pieces it is made of.
type rowReader struct {
	buf   *ir.Buffer
	stack *transform.Stack
	keys  []string
	exact bool // every piece has elements of the buffer's dtype, so that none is rounded

	format format.Format
}

func (w *Weights) open(b *ir.Buffer, i int) (*rowReader, error) {
	r := &rowReader{buf: b, exact: true}
	fail := func(format string, args ...any) error {
		return diag.Errorf(codeWeights, "buffer "+b.Name, format, args...)
	}
	if r.format = b.Format(); r.format == nil {
		return nil, fail("%s of %s; weights are packed as %s", b.Layout.Kind, b.DType, format.Names())
	}
	var views []*transform.View
	var chains []transform.Chain
	for _, piece := range b.Pieces {
		key, err := ir.ResolveKey(piece.Key, i)
		if err != nil {
			return nil, fail("%v", err)
		}
		computed, isComputed := w.computed[key]
		var tensor transform.Tensor = computed
		if matrix := w.matrices[key]; matrix != nil {
			tensor, r.exact = matrix.NewReader(), r.exact && b.DType == ir.F32
		} else if !isComputed {
			t, ok := w.checkpoint.Tensor(key)
			if !ok {
				return nil, fail("the checkpoint has no tensor %s", key)
			}
			tensor = t
			if len(b.Shape) == 1 {
				tensor = elements{t}
			}
			r.exact = r.exact && modelDTypes[t.DType] == b.DType
		}
		v, err := piece.Chain.Of(tensor)
		if err != nil {
			return nil, fail("tensor %s: %v", key, err)
		}
		r.exact = r.exact && v.Plain() && !isComputed
		r.keys, views, chains = append(r.keys, key), append(views, v), append(chains, piece.Chain)
	}
	rows, cols := b.Matrix()
	var err error
	if r.stack, err = transform.Pack(views, chains, rows, cols); err != nil {
		return nil, fail("%v", err)
	}
	return r, nil
}

// elements are a tensor whose rows are its elements one by one, as a vector has them.
type elements struct{ checkpoint.Tensor }

func (e elements) Rows() int   { return e.Tensor.Rows() * e.Tensor.RowLen() }
func (e elements) RowLen() int { return 1 }

// numbers are a computed vector as a tensor.
type numbers []float32

func (n numbers) Rows() int   { return len(n) }
func (n numbers) RowLen() int { return 1 }

func (n numbers) ReadF32(dst []float32, first int) error {
	copy(dst, n[first:])
	return nil
}

// read fills dst with the rows [row0, row1). A finite value that the format would make infinite is refused.
func (r *rowReader) read(dst []float32, row0, row1 int) error {
	if err := r.stack.ReadRows(dst, row0, row1); err != nil || r.exact {
		return err
	}
	largest := r.format.Largest()
	for i, v := range dst {
		if (v > largest || v < -largest) && !math.IsInf(float64(v), 0) {
			k, row := r.stack.Source(row0 + i/r.stack.Cols)
			row, col := r.stack.Views[k].At(row, i%r.stack.Cols)
			return diag.Errorf(codeOverflow, "tensor "+r.keys[k],
				"element %s is %g, which %s cannot hold; want --dtype bf16 or fp32",
				fmt.Sprint([]int{row, col}), v, r.buf.DType)
		}
	}
	return nil
}
