package host

import (
	"encoding/binary"
	"math"
)

// decodeElements reads little-endian elements of a model's dtype.
func decodeElements(raw []byte, dtype string) []float32 {
	size := elementBytes(dtype)
	values := make([]float32, len(raw)/size)
	for i := range values {
		switch at := raw[i*size:]; dtype {
		case "F32":
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(at))
		case "F16":
			values[i] = fromHalf(binary.LittleEndian.Uint16(at))
		default:
			values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(at)) << 16)
		}
	}
	return values
}

// encodeElements is the inverse of decodeElements. The values must be ones that the dtype has: nothing is rounded.
func encodeElements(values []float32, dtype string) []byte {
	raw := make([]byte, 0, len(values)*elementBytes(dtype))
	for _, v := range values {
		bits := math.Float32bits(v)
		switch dtype {
		case "F32":
			raw = binary.LittleEndian.AppendUint32(raw, bits)
		case "F16":
			raw = binary.LittleEndian.AppendUint16(raw, toHalf(bits))
		default:
			raw = binary.LittleEndian.AppendUint16(raw, uint16(bits>>16))
		}
	}
	return raw
}

func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h)&0x8000<<16, uint32(h)>>10&31, uint32(h)&0x3FF
	switch exponent {
	case 0:
		return float32(math.Copysign(math.Ldexp(float64(fraction), -24), float64(math.Float32frombits(sign|1<<23))))
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// toHalf converts the bits of a float32 that is a half exactly.
func toHalf(bits uint32) uint16 {
	sign, exponent, fraction := uint16(bits>>16&0x8000), int(bits>>23&255)-112, bits&(1<<23-1)
	switch {
	case exponent == 255-112: // infinite or not a number
		return sign | 31<<10 | uint16(fraction>>13)
	case exponent <= 0: // zero or subnormal
		return sign | uint16((fraction|1<<23)>>min(14-exponent, 31))
	}
	return sign | uint16(exponent)<<10 | uint16(fraction>>13)
}
