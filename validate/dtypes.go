package validate

import (
	"amkc/ir"
	"amkc/ir/op"
)

// checkElements: indices are I32, everything else is a float; quantised elements are for weights that a qdtype
// describes.
func (p *Proof) checkElements(form *op.Form, in, out []view) {
	c := &p.call
	for i := range in {
		d := in[i].dtype
		switch form.Input(i).Elem {
		case op.Float:
			if !isFloat(d) {
				c.Fail("input %d is %s, want F32, F16 or BF16", i+1, d)
			}
		case op.Index:
			if d != ir.I32 {
				c.Fail("input %d is %s, want I32", i+1, d)
			}
		case op.Quantised:
			if want := ir.DType(c.Int("qdtype", 0)); d != want {
				c.Fail("input %d is %s, want %s, which is what qdtype says", i+1, d, want)
			}
		}
	}
	for i := range out {
		if out[i].buf < 0 {
			continue
		}
		d := out[i].dtype
		switch form.Output(i).Elem {
		case op.Float:
			if !isFloat(d) {
				c.Fail("output %d is %s, want F32, F16 or BF16", i+1, d)
			}
		case op.Index:
			if d != ir.I32 {
				c.Fail("output %d is %s, want I32", i+1, d)
			}
		case op.AsInput:
			if (d == ir.I32) != (in[0].dtype == ir.I32) {
				c.Fail("copies %s to %s", in[0].dtype, d)
			}
		}
	}
}

// temporaryType is what a temporary holds that is a result: F32, or I32 where the op yields indices.
func temporaryType(result *op.Operand, in []view) ir.DType {
	if result.Elem == op.Index || result.Elem == op.AsInput && in[0].dtype == ir.I32 {
		return ir.I32
	}
	return ir.F32
}

func isFloat(d ir.DType) bool { return d == ir.F32 || d == ir.F16 || d == ir.BF16 }
