package format

import "math"

// Groups are rows of quantised elements with a scale, and perhaps a zero point, for every group of columns:
// w = scale · (q − zero) for integers, and w = scale · q for fp8.
type Groups struct {
	Cols  int       // of a row
	Group int       // columns of a group; the last group of a row may have fewer
	Q     []byte    // rows × Cols: int8 (int4 sign-extended, q − 8 of an unsigned nibble q), or the bits of e4m3
	Scale []float32 // rows × ⌈Cols/Group⌉
	Zero  []int8    // like Scale (minus 8 for unsigned nibbles too), or nil for none
}

// Rows is the number of rows.
func (g *Groups) Rows() int { return len(g.Q) / g.Cols }

// PerRow is the number of groups of a row.
func (g *Groups) PerRow() int { return (g.Cols + g.Group - 1) / g.Group }

// fromE4M3 are the values of e4m3 numbers by their bits (OCP 8-bit floating point, section 5): 4 bits of exponent with
// a bias of 7, 3 of mantissa, no infinities, and NaN where all seven bits are set.
var fromE4M3 = func() (values [256]float32) {
	for b := range values {
		exponent, mantissa := b>>3&15, float64(b&7)
		v := math.Ldexp(8+mantissa, exponent-10)
		switch {
		case b&0x7f == 0x7f:
			v = math.NaN()
		case exponent == 0:
			v = math.Ldexp(mantissa, -9)
		}
		values[b] = float32(math.Copysign(v, 1-2*float64(b>>7)))
	}
	return values
}()
