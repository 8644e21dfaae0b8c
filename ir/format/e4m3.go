package format

import "math"

// A number is a type of floats of 4 or 8 bits.
type number struct {
	dtype   string
	bits    int
	groups  []int // how many columns may share a scale
	scales  []element
	enum    string // of weight_format.cuh
	largest float32
	values  *[256]float32      // by their bits
	round   func(float32) byte // to the nearest one, ties to even
}

var numbers = []number{
	{"F4E2M1", 4, []int{32}, []element{e8m0}, "kE2m1", 6, &fromE2M1, toE2M1},
	{"F8E4M3", 8, []int{128}, []element{f32, f16, bf16}, "kE4m3", 448, &fromE4M3, toE4M3},
}

// floatsOf are those of an element type, or nil.
func floatsOf(dtype string) *number {
	for i := range numbers {
		if numbers[i].dtype == dtype {
			return &numbers[i]
		}
	}
	return nil
}

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

// toE4M3 is the nearest number, ties to even; magnitudes beyond 448, the largest one, become that.
func toE4M3(f float32) byte {
	const (
		least   = 0x3c800000 // the bits of 2^-6, the least normal number
		rebased = 120 << 3   // what is between the exponents of float32 and e4m3
	)
	bits := math.Float32bits(f)
	sign, bits := byte(bits>>24&0x80), bits&^(1<<31)
	if bits < least {
		return sign | byte(integer(float32(math.Float32frombits(bits)*512)))
	}
	return sign | byte(min(0x7e, (bits+0x7ffff+bits>>20&1)>>20-rebased))
}

// FromE4M3 is the value of a number in e4m3 by its bits.
func FromE4M3(bits byte) float32 { return fromE4M3[bits] }
