package format

import "math"

// This file has the types of MXFP4 (OCP Microscaling Formats 1.0): elements of e2m1, and for each 32 columns of a row a
// power of two as their scale.

// fromE2M1 are the values of e2m1 numbers by their bits (section 5.3.3): a sign, 2 bits of exponent with a bias of 1
// and 1 of mantissa. No number has more than 4 bits.
var fromE2M1 = func() (values [256]float32) {
	for b, magnitude := range [...]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6} {
		values[b] = magnitude
		values[b|8] = float32(math.Copysign(float64(magnitude), -1))
	}
	return values
}()

// toE2M1 is the nearest number, ties to the one whose last bit is 0; magnitudes beyond 6, the largest one, become that.
func toE2M1(f float32) byte {
	bits := math.Float32bits(f)
	sign, m := byte(bits>>31<<3), math.Float32frombits(bits&^(1<<31))
	for b, tie := range [...]float32{0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5} { // between number b and the next
		if m < tie || m == tie && b%2 == 0 {
			return sign | byte(b)
		}
	}
	return sign | 7
}

// e8m0 is a power of two from 2^-127 to 2^127 by its exponent (section 5.4.1); what it encodes is rounded down to
// one, and read back as that.
var e8m0 = element{"F8E8M0", 1, 0x1p127, "E8m0"}
