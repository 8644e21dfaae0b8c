package refvm

import (
	"math"

	"amkc/ir/half"
)

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
