package checkpoint

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"amkc/ir/diag"
	"amkc/ir/half"
)

// A DType is an element type as safetensors spells it.
type DType string

// The dtypes that amkc computes with. Others may be in a file (see dtypeBits) and can be compared, but not decoded.
const (
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	U8   DType = "U8"
	E8M0 DType = "F8_E8M0" // powers of two
)

// dtypeBits holds every dtype that the format defines, with the bits of an element. Those under 8 bits are packed, and
// a tensor of them must fill whole bytes.
var dtypeBits = map[DType]int64{
	"BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64,
	"F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
	"F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}

func dtypeNames() string {
	var names []string
	for d := range dtypeBits {
		names = append(names, string(d))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// decoder widens elements to float32, and knows the bytes that one takes.
type decoder struct {
	size   int64
	decode func(dst []float32, src []byte)
	encode func(dst []byte, src []float32)
	round  func(float32) float32
}

// decoders has an entry for each dtype that weights are read from.
var decoders = map[DType]decoder{
	F32:  {4, half.DecodeF32, half.EncodeF32, func(f float32) float32 { return f }},
	F16:  {2, half.DecodeF16, half.EncodeF16, half.RoundF16},
	BF16: {2, half.DecodeBF16, half.EncodeBF16, half.RoundBF16},
}

// A Spec declares a tensor: one to be written, or to be filled with random values.
type Spec struct {
	Name  string
	DType DType
	Shape []int // outermost dimension first; empty for a scalar
}

// maxRank is far above what a model needs; the format sets no limit.
const maxRank = 8

// bytes is the size of the tensor's data. Errors: AMK1014 (dtype), AMK1015 (shape), AMK1016 (not whole bytes).
func (s Spec) bytes(pos string) (int64, *diag.Diagnostic) {
	width, known := dtypeBits[s.DType]
	if !known {
		return 0, diag.Errorf(codeDType, pos, "dtype %q is not known; the format has %s", s.DType, dtypeNames())
	}
	if len(s.Shape) > maxRank {
		return 0, diag.Errorf(codeShape, pos, "%d dimensions; at most %d are accepted", len(s.Shape), maxRank)
	}
	total := uint64(width)
	for _, n := range s.Shape {
		if n < 0 {
			return 0, diag.Errorf(codeShape, pos, "shape %v has a negative dimension", s.Shape)
		}
		// The zero of an empty tensor must not hide an overflow before or after it, hence max.
		high, low := bits.Mul64(total, uint64(max(n, 1)))
		if high != 0 || low > math.MaxInt64 {
			return 0, diag.Errorf(codeShape, pos, "shape %v of %s overflows: more than 2^63 bits", s.Shape, s.DType)
		}
		total = low
	}
	if slices.Contains(s.Shape, 0) {
		return 0, nil
	}
	if total%8 != 0 {
		return 0, diag.Errorf(codeTensorSize, pos, "shape %v of %s is %d bits, not a whole number of bytes", s.Shape,
			s.DType, total)
	}
	return int64(total / 8), nil
}

// tensorPos is how diagnostics point at a tensor of a file.
func tensorPos(file, tensor string) string { return fmt.Sprintf("%s: tensor %q", file, tensor) }
