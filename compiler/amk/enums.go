package amk

import "strconv"

// A DType is an element type; its value is the code on the device.
type DType uint8

const (
	F32 DType = iota
	F16
	BF16
	F8E4M3
	F8E5M2
	I32
	I8
	I4 // packed, two per byte
	U8
	BOOL
)

var (
	dtypeNames = []string{"F32", "F16", "BF16", "F8E4M3", "F8E5M2", "I32", "I8", "I4", "U8", "BOOL"}
	dtypeBits  = []int{32, 16, 16, 8, 8, 32, 8, 4, 8, 8}
)

func (d DType) String() string { return enumName(dtypeNames, int(d)) }

// Bits returns the size of one element in bits.
func (d DType) Bits() int { return dtypeBits[d] }

// Bytes returns the size of count elements in bytes, rounded up.
func (d DType) Bytes(count int) int { return ceilDiv(count*d.Bits(), 8) }

// A MemSpace is where a buffer or page lives; its value is the code on the device.
type MemSpace uint8

const (
	HBM MemSpace = iota
	GlobalScratch
	SMEM
	Register
)

var spaceNames = []string{"HBM", "GLOBAL_SCRATCH", "SMEM", "REGISTER"}

func (s MemSpace) String() string { return enumName(spaceNames, int(s)) }

// A BufferKind is the role of a buffer; its value is the code on the device.
type BufferKind uint8

const (
	Weight BufferKind = iota
	Activation
	KVCache
	IOInput
	IOOutput
	Const
)

var kindNames = []string{"WEIGHT", "ACTIVATION", "KV_CACHE", "IO_INPUT", "IO_OUTPUT", "CONST"}

func (k BufferKind) String() string { return enumName(kindNames, int(k)) }

// ReadOnly reports whether buffers of this kind may be read without a task that wrote them.
func (k BufferKind) ReadOnly() bool { return k == Weight || k == Const || k == IOInput }

func enumName(names []string, code int) string {
	if code < len(names) {
		return names[code]
	}
	return strconv.Itoa(code)
}
