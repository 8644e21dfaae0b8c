package half

import "math"

// FromE8M0 is the power of two with these bits (OCP Microscaling Formats 1.0, section 5.4.1): from 2^-127 to 2^127, and
// NaN for 255.
func FromE8M0(bits byte) float32 {
	switch bits {
	case 0:
		return 0x1p-127
	case 255:
		return float32(math.NaN())
	}
	return math.Float32frombits(uint32(bits) << 23)
}

// ToE8M0 rounds a positive number down to a power of two, and makes what is less than all of them the least.
func ToE8M0(f float32) byte { return byte(min(254, math.Float32bits(f)>>23)) }

// DecodeE8M0 fills dst with powers of two.
func DecodeE8M0(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = FromE8M0(src[i])
	}
}

// EncodeE8M0 is the way back.
func EncodeE8M0(dst []byte, src []float32) {
	for i, f := range src {
		dst[i] = ToE8M0(f)
	}
}
