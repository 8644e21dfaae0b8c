package half

import (
	"encoding/binary"
	"math"
)

// The slice forms convert between values and their little-endian bytes, as files and devices hold them. Decoders fill
// dst[:len(src)/size], encoders fill dst[:size*len(src)]; a dst that is too short is a mistake of the caller and
// panics.

// DecodeBF16 widens the bfloat16 bytes of src, two per element.
func DecodeBF16(dst []float32, src []byte) {
	dst = dst[:len(src)/2]
	for i := range dst {
		dst[i] = FromBF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// EncodeBF16 narrows src to bfloat16 bytes, two per element.
func EncodeBF16(dst []byte, src []float32) {
	dst = dst[:2*len(src)]
	for i, f := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], ToBF16(f))
	}
}

// DecodeF16 widens the IEEE binary16 bytes of src, two per element.
func DecodeF16(dst []float32, src []byte) {
	dst = dst[:len(src)/2]
	for i := range dst {
		dst[i] = FromF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// EncodeF16 narrows src to IEEE binary16 bytes, two per element.
func EncodeF16(dst []byte, src []float32) {
	dst = dst[:2*len(src)]
	for i, f := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], ToF16(f))
	}
}

// DecodeF32 reads the float32 bytes of src, four per element.
func DecodeF32(dst []float32, src []byte) {
	dst = dst[:len(src)/4]
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// EncodeF32 writes src as float32 bytes, four per element.
func EncodeF32(dst []byte, src []float32) {
	dst = dst[:4*len(src)]
	for i, f := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(f))
	}
}
