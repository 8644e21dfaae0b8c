package refvm

import (
	"math"

	"amkc/ir"
	"amkc/ir/half"
)

// Rounding selects which values are rounded.
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

// A matrix of floats of 8 bits is multiplied by activations in fp16, where the kernel rounds (Device) and values
// of 16 bits are published. Of each 128 columns of the matrix the largest magnitude is taken to 2^15 at least and
// to less than 2^16, by a power of two, so that those of bf16 fit. Values of fp16 stay what they are, and so do
// those of bf16 down to 2^-31 of the largest.

// inFP16 rounds rows of k values, for the columns of a matrix from first on.
func (w *worker) inFP16(x []float32, k, first int) []float32 {
	const mantissa, bias, top = 23, 127, 15
	power := func(n int) float32 { return math.Float32frombits(uint32(n+bias) << mantissa) }
	out := w.alloc(len(x))
	for row := 0; row < len(x); row += k {
		for lo := 0; lo < k; {
			hi := min(k, lo+digitColumns-(first+lo)%digitColumns)
			exponent := int(magnitude(x[row+lo:row+hi])>>mantissa) - bias
			up, down := power(top-exponent), power(exponent-top)
			for i := row + lo; i < row+hi; i++ {
				out[i] = half.RoundF16(x[i]*up) * down
			}
			lo = hi
		}
	}
	return out
}
