// Package half converts between float32 and the two 16-bit floating-point formats that checkpoints are stored in: IEEE
// 754 binary16 ("F16") and bfloat16 ("BF16"). Narrowing rounds to nearest, ties to even, as the hardware and the usual
// frameworks do; NaN, infinities and signed zeros are preserved, and subnormals are exact.
//
// It imports the standard library only, and must not import any other package of amkc.
package half

import "math"

// Bit patterns of float32 that bound the cases below.
const (
	f32Inf    = 0x7f80_0000 // +Inf; anything above it (sign removed) is a NaN
	f32MinF16 = 0x3880_0000 // 2^-14, the smallest normal F16
	f32MaxF16 = 0x477f_f000 // 65520, half-way between the largest F16, 65504, and 2^16: even, so infinite
)

// FromBF16 widens a bfloat16. It is exact, and keeps the payload of a NaN.
func FromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// ToBF16 narrows to bfloat16. A NaN becomes a quiet NaN with the upper bits of its payload.
func ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&^(1<<31) > f32Inf {
		return uint16(b>>16) | 1<<6 // the quiet bit, or else a payload in the low half would round to Inf
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16) // the carry runs into the exponent, and at the top into Inf
}

// FromF16 widens an IEEE binary16. It is exact, and keeps the payload of a NaN.
func FromF16(h uint16) float32 {
	sign, mag := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	if mag >= 0x7c00 {
		return math.Float32frombits(sign | f32Inf | mag&0x3ff<<13)
	}
	// Read in place, the exponent is too small by the difference of the biases, 127 - 15; multiplying by that power of
	// two corrects it, and normalises the subnormals on the way.
	scaled := math.Float32frombits(mag<<13) * 0x1p112
	return math.Float32frombits(sign | math.Float32bits(scaled))
}

// ToF16 narrows to IEEE binary16. Magnitudes of 65520 and above become infinite. A NaN becomes a quiet NaN with the
// upper bits of its payload.
func ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign, mag := uint16(b>>16)&0x8000, b&^(1<<31)
	switch {
	case mag > f32Inf:
		return sign | 0x7e00 | uint16(mag>>13)&0x3ff
	case mag >= f32MaxF16:
		return sign | 0x7c00
	case mag < f32MinF16:
		// One unit in the last place of 0.5 is 2^-24, the step of F16's subnormals: the addition does the rounding.
		sum := math.Float32frombits(mag) + 0.5
		return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5))
	}
	mag += 0xfff + mag>>13&1 // round at bit 13
	return sign | uint16((mag-(127-15)<<23)>>13)
}

// RoundBF16 is the float32 nearest to f that bfloat16 can hold.
func RoundBF16(f float32) float32 { return FromBF16(ToBF16(f)) }

// RoundF16 is the float32 nearest to f that IEEE binary16 can hold.
func RoundF16(f float32) float32 { return FromF16(ToF16(f)) }
