package refvm

import (
	"amkc/ir"
	"amkc/ir/half"
)

// Rounding says where values lose precision.
type Rounding int

const (
	None   Rounding = iota // nowhere: all values are float32, weights as stored
	Device                 // where the kernel rounds; the table is in the package comment
)

// rounder maps a value to the nearest one that an element type can hold; nil means that float32 holds them all.
type rounder func(float32) float32

// rounderFor returns how values of a dtype are rounded in mode r.
func rounderFor(r Rounding, t ir.DType) rounder {
	switch {
	case r == Device && t == ir.BF16:
		return half.RoundBF16
	case r == Device && t == ir.F16:
		return half.RoundF16
	}
	return nil
}

// of rounds one value.
func (r rounder) of(f float32) float32 {
	if r == nil {
		return f
	}
	return r(f)
}

// all returns values rounded; a copy, unless they are exact already.
func (r rounder) all(values []float32) []float32 {
	if r == nil {
		return values
	}
	for i, f := range values {
		if g := r(f); g != f && f == f {
			out := make([]float32, len(values))
			copy(out, values[:i])
			for j, f := range values[i:] {
				out[i+j] = r(f)
			}
			return out
		}
	}
	return values
}
