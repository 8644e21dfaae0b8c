package passes

import (
	"fmt"
	"math"
	"slices"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/importers/quantised"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/ir/transform"
)

// A rowReader reads the rows of a buffer from the pieces it is made of.
type rowReader struct {
	buf   *ir.Buffer
	stack *transform.Stack
	keys  []string
	exact bool // every piece has elements of the buffer's dtype, so that none is rounded

	format format.Format
	// matrices are those of the pieces, where what they store is what the format keeps; nil: values are packed.
	matrices []*quantised.Reader
}

func (w *Weights) open(b *ir.Buffer, i int) (*rowReader, error) {
	r := &rowReader{buf: b, exact: true}
	fail := func(format string, args ...any) error {
		return diag.Errorf(importers.CodeWeights, "buffer "+b.Name, format, args...)
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
			reader := matrix.NewReader()
			tensor, r.exact = reader, r.exact && b.DType == ir.F32
			if stores(b, &matrix.Element) {
				r.matrices = append(r.matrices, reader)
			}
		} else if !isComputed {
			t, ok := w.checkpoint.Tensor(key)
			if !ok {
				return nil, fail("the checkpoint has no tensor %s", key)
			}
			tensor = t
			switch len(b.Shape) {
			case 1:
				tensor = elements{t}
			case 3:
				tensor = family{t}
			}
			r.exact = r.exact && importers.ModelDTypes[t.DType] == b.DType
		}
		v, err := piece.Chain.Of(tensor)
		if err != nil {
			return nil, fail("tensor %s: %v", key, err)
		}
		r.exact = r.exact && v.Plain() && !isComputed
		r.keys, views, chains = append(r.keys, key), append(views, v), append(chains, piece.Chain)
	}
	if len(r.matrices) < len(views) || slices.ContainsFunc(views,
		func(v *transform.View) bool { return !v.WholeRows() }) {
		r.matrices = nil
	}
	rows, cols := b.Matrix()
	var err error
	if r.stack, err = transform.Pack(views, chains, rows, cols); err != nil {
		return nil, fail("%v", err)
	}
	return r, nil
}

// stores reports whether a buffer keeps the elements of a quantised matrix, and what its groups have, as they are.
func stores(b *ir.Buffer, e *quantised.Element) bool {
	return b.Layout.Kind == ir.Tile8x128 && b.Layout.Scales.DType == importers.ScaleDTypes[e.Scale] &&
		e.IsStoredIn(elementOf(b, e))
}

// elementOf is the element of a quantised buffer, whose scales have the type of another one's.
func elementOf(b *ir.Buffer, e *quantised.Element) quantised.Element {
	s := b.Layout.Scales
	return quantised.Element{Type: b.DType.String(), Group: s.Group, Scale: e.Scale, Zeros: s.Zeros, Mins: s.Mins,
		Steps: s.Steps}
}

// readGroups returns rows [row0, row1) as the matrices of the pieces store them.
func (r *rowReader) readGroups(row0, row1 int) (*format.Groups, error) {
	out := &format.Groups{Cols: r.stack.Cols, Group: r.buf.Layout.Scales.Group}
	for row := row0; row < row1; row++ {
		k, at := r.stack.Source(row)
		stored, _ := r.stack.Views[k].At(at, 0)
		g, err := r.matrices[k].RowIn(elementOf(r.buf, &r.matrices[k].Element), stored)
		if err != nil {
			return nil, err
		}
		if g.Zero == nil && r.buf.Layout.Scales.Zeros {
			g.Zero = make([]int8, len(g.Scale))
		}
		out.Append(&g)
	}
	return out, nil
}

// elements are a tensor whose rows are its elements one by one, as a vector has them.
type elements struct{ checkpoint.Tensor }

func (e elements) Rows() int   { return e.Tensor.Rows() * e.Tensor.RowLen() }
func (e elements) RowLen() int { return 1 }

// A family is a tensor of several matrices, or one of them, as the rows of all.
type family struct{ checkpoint.Tensor }

func (f family) RowLen() int { return f.Shape[len(f.Shape)-1] }
func (f family) Rows() int   { return f.Tensor.Rows() * f.Tensor.RowLen() / max(1, f.RowLen()) }

// numbers are a computed vector as a tensor.
type numbers []float32

func (n numbers) Rows() int   { return len(n) }
func (n numbers) RowLen() int { return 1 }

func (n numbers) ReadF32(dst []float32, first int) error {
	copy(dst, n[first:])
	return nil
}

// read fills dst with the rows [row0, row1). A finite value that the format would make infinite is refused, and so is
// one that is not finite by formats that have no such.
func (r *rowReader) read(dst []float32, row0, row1 int) error {
	if err := r.stack.ReadRows(dst, row0, row1); err != nil || r.exact {
		return err
	}
	largest := r.format.Largest()
	_, quantised := r.format.(format.Quantised)
	for i, v := range dst {
		if (v > largest || v < -largest || v != v) && (quantised || !math.IsInf(float64(v), 0) && v == v) {
			k, row := r.stack.Source(row0 + i/r.stack.Cols)
			row, col := r.stack.Views[k].At(row, i%r.stack.Cols)
			want := "--dtype bf16 or fp32"
			if quantised {
				want = fmt.Sprintf("finite weights of at most %g, or another item for the tensor in --weights", largest)
			}
			return diag.Errorf(codeOverflow, "tensor "+r.keys[k], "element %s is %g, which %s cannot hold; want %s",
				fmt.Sprint([]int{row, col}), v, r.buf.DType, want)
		}
	}
	return nil
}
