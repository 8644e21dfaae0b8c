package oracle

import (
	"fmt"
	"slices"

	"amkc/ir"
)

// What the reference code converts or ignores and a device cannot: it holds an integer parameter in an integer field, once,
// and takes the bits of an operand for what its opcode says they are.

// misformed says what is wrong with the parameters and the types of an op; "" if nothing is.
func misformed(f *ir.Flat, op *ir.FlatOp) string {
	for i, p := range op.Params {
		if p.IsFloat && p.Key != "eps" && p.Key != "scale" && p.Key != "theta" {
			return fmt.Sprintf("parameter %s of %s is %g", p.Key, op.Code, p.Float)
		}
		if slices.ContainsFunc(op.Params[:i], func(q ir.Param) bool { return q.Key == p.Key }) {
			return fmt.Sprintf("%s has %s twice", op.Code, p.Key)
		}
	}
	if op.Code == ir.FUSED || op.Code == ir.DEQUANT {
		return ""
	}
	for i, b := range op.InBuf {
		if b < 0 {
			continue
		}
		d, want := f.Buffers[b].DType, "a float"
		fits := isFloat(d)
		switch {
		case counts(op, i):
			fits, want = d == ir.I32, "I32"
		case op.Code == ir.COPY:
			fits = true
		case op.Has("qdtype") && i == 1:
			q := ir.DType(op.IntAt("qdtype", f.Lo, 0))
			fits, want = d == q && (q == ir.I8 || q == ir.I4), "quantised"
		case op.Has("qdtype") && i > 1:
			fits = true
		}
		if !fits {
			return fmt.Sprintf("%s takes the bits of %s %s for %s", op.Code, d, f.Buffers[b].Name, want)
		}
	}
	for i, b := range op.OutBuf {
		if b < 0 {
			continue
		}
		d := f.Buffers[b].DType
		index := op.Code == ir.ArgMax && (i == 1 || op.IntAt("partial", f.Lo, 0) == 0)
		if op.Code == ir.COPY && len(op.InBuf) > 0 && op.InBuf[0] >= 0 {
			index = f.Buffers[op.InBuf[0]].DType == ir.I32
		}
		if index != (d == ir.I32) || !index && !isFloat(d) && op.Code != ir.COPY {
			return fmt.Sprintf("%s writes %s as %s", op.Code, f.Buffers[b].Name, d)
		}
	}
	return ""
}

// counts reports whether an input holds numbers of rows or positions.
func counts(op *ir.FlatOp, i int) bool {
	switch op.Code {
	case ir.EMBED:
		return i == 0
	case ir.ROPE:
		return i == 1 && op.IntAt("order", 0, 0) == 0
	case ir.ArgMax:
		return i == 1
	}
	return false
}

func isFloat(d ir.DType) bool { return d == ir.F32 || d == ir.F16 || d == ir.BF16 }

// misplaced says what is wrong with where a buffer lies; "" if nothing is.
func misplaced(b *ir.Buffer) string {
	if c := b.Layout.Copies; c < 0 || c > 64 || c > 1 && !b.Layout.Words() {
		return fmt.Sprintf("has %d copies", c)
	}
	if (b.Space == ir.SMEM || b.Space == ir.Register) && (b.Kind != ir.Activation || b.Layout.Kind != ir.RowMajor) {
		return fmt.Sprintf("is %s in %s as %s, and nobody puts it there", b.Kind, b.Space, b.Layout)
	}
	return ""
}
