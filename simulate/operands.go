package simulate

import (
	"errors"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
)

// A Fit is whether the operands and the parameters of a program's ops are valid for their opcodes.
type Fit int

const (
	Unknown Fit = iota // something else is wrong before that shows
	Fits
	Misfits
)

// maxFitted bounds the positions at which operands are looked at.
const maxFitted = 8

// Operands runs every task of a program separately, without its waits. Misfits means that the reference code refuses
// the shapes, the types or the number of an op's operands, or its parameters; the text says which.
func Operands(f *ir.Flat, fp *Footprints, e Effort) (Fit, string) {
	if h := wellFormed(f); h != nil {
		return Unknown, h.Detail
	}
	e.Positions = max(e.Positions, maxFitted)
	fit, detail := Fits, ""
	for _, pos := range positions(f.Lo, f.Hi, e) {
		for t := range f.Tasks {
			_, _, err := fp.within(f, t, Run{Flat: f, Pos: pos}.at(), f.Lo, f.Hi, e.Stop)
			var d *diag.Diagnostic
			switch {
			case err == nil:
			case errors.As(err, &d) && (d.Code == refvm.CodeSizes.ID || d.Code == refvm.CodeOp.ID ||
				d.Code == refvm.CodeView.ID):
				return Misfits, err.Error()
			default:
				fit, detail = Unknown, err.Error()
			}
		}
	}
	return fit, detail
}
