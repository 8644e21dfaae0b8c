package format

import (
	"math"

	"amkc/ir/half"
)

// An element is a floating-point type that a format is made of.
type element struct {
	name    string
	size    int // bytes
	largest float32
	loader  string // of runtime/cuda/amk/element.cuh
}

// The largest values of the 16-bit types are those below the middle between the largest number and the next power of
// two, which rounds to infinity.
var (
	f32  = element{"F32", 4, math.MaxFloat32, "Fp32"}
	f16  = element{"F16", 2, math.Nextafter32(65520, 0), "Fp16"}
	bf16 = element{"BF16", 2, math.Float32frombits(0x7f7f7fff), "Bf16"}
)

// Enumerators are the enumerators of weight_format.cuh for the types of elements and of scales, by name.
var Enumerators = func() map[string]string {
	all := map[string]string{"F32": "kFp32", "F16": "kFp16", "BF16": "kBf16", "I4": "kInt4", "I5": "kInt5",
		"I6": "kInt6", "I8": "kInt8", "F8E8M0": "kE8m0"}
	for _, of := range numbers {
		all[of.dtype] = of.enum
	}
	return all
}()

// encode and decode call functions by name, so that what they are given stays on the stack.
func (e *element) encode(dst []byte, src []float32) {
	switch e.name {
	case "F16":
		half.EncodeF16(dst, src)
	case "BF16":
		half.EncodeBF16(dst, src)
	case "F8E8M0":
		half.EncodeE8M0(dst, src)
	default:
		half.EncodeF32(dst, src)
	}
}

func (e *element) decode(dst []float32, src []byte) {
	switch e.name {
	case "F16":
		half.DecodeF16(dst, src)
	case "BF16":
		half.DecodeBF16(dst, src)
	case "F8E8M0":
		half.DecodeE8M0(dst, src)
	default:
		half.DecodeF32(dst, src)
	}
}
