package format

import "math"

// deviation is about the standard deviation of the elements of invented matrices, as of random ones in files.
const deviation = 0.02

// Invented makes matrices of a format out of random bits: those that `keep` has are kept, and those that `set` has are
// 1, in a pattern that repeats from the first byte of a matrix on. Elements have a mean of 0. It returns nothing for
// formats of files, whose matrices are not invented.
//
// Elements of 16 or 32 bits are of one power of two, of either sign. So are scales, above 0. Integers are odd, unless
// they have zero points, which are as random then.
func Invented(f Format) (keep, set []byte) {
	exponent := 0
	if keep, set = invented(f, exponent); keep == nil {
		return nil, nil
	}
	// The largest and the least of a number of values have about the same share in all formats: a sample has the size.
	const cols = 2 * quantColumns
	packed, values := make([]byte, f.Bytes(tileRows, cols)), make([]float32, tileRows*cols)
	state := uint32(1)
	for i := range packed {
		state = state*1664525 + 1013904223
		packed[i] = byte(state>>24)&keep[i%len(keep)] | set[i%len(set)]
	}
	f.Unpack(values, packed, cols)
	squares := 0.0
	for _, v := range values {
		squares += float64(v) * float64(v)
	}
	size := math.Sqrt(squares / float64(len(values)))
	return invented(f, int(math.Round(math.Log2(deviation/size))))
}

// invented is the pattern with numbers, or scales, of a power of two.
func invented(f Format, exponent int) (keep, set []byte) {
	number := func(e *element, signed bool, count int) {
		mantissa, bias := map[string]int{"F32": 23, "F16": 10, "BF16": 7}[e.name], 127
		if e.name == "F16" {
			bias = 15
		}
		bits := uint32(1)<<mantissa - 1
		if signed {
			bits |= 1 << (8*e.size - 1)
		}
		if e.name == "F8E8M0" { // of this power of two or of the next
			bits = 0
		}
		for range count {
			for i := range e.size {
				keep = append(keep, byte(bits>>(8*i)))
				set = append(set, byte(uint32(bias+exponent)<<mantissa>>(8*i)))
			}
		}
	}
	fill := func(k, s byte, count int) {
		for range count {
			keep, set = append(keep, k), append(set, s)
		}
	}
	switch f := f.(type) {
	case plain:
		number(&f.e, true, unit/f.e.size)
	case tiles:
		number(&f.e, true, unit/f.e.size)
	case blocks:
		element := map[string][2]byte{"I4": {0xee, 0x11}, "I8": {0xfe, 0x01}, "F8E4M3": {0xbf, 0}, // below 2
			"F4E2M1": {0xff, 0}}[f.dtype]
		if f.mins || f.steps || element[0] == 0 {
			return nil, nil
		}
		if f.zeros {
			element = [2]byte{0xff, 0}
		}
		fill(element[0], element[1], f.scalesAt())
		number(&f.scale, false, f.groups())
		if f.zeros {
			fill(byte(1<<f.bits-1), 0, f.groups())
		}
		fill(0, 0, f.size()-len(keep))
	}
	return keep, set
}
