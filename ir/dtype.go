package ir

import "fmt"

// DType is an element type. Names and codes are those of the AMK IR (IR specification, section 1.1).
type DType int

const (
	F32 DType = iota
	F16
	BF16
	F8E4M3
	F8E5M2
	I32
	I8
	I4
	U8
	BOOL
	I5 // integers of 5 and 6 bits are in quantised blocks alone
	I6
	F4E2M1
	F8E8M0 // a power of two
)

var dtypeNames = [...]string{"F32", "F16", "BF16", "F8E4M3", "F8E5M2", "I32", "I8", "I4", "U8", "BOOL", "I5", "I6",
	"F4E2M1", "F8E8M0"}
var dtypeBits = [...]int{32, 16, 16, 8, 8, 32, 8, 4, 8, 8, 5, 6, 4, 8}

func (t DType) String() string { return enumName(dtypeNames[:], int(t)) }

// Bits returns the size of one element in bits.
func (t DType) Bits() int {
	if t < 0 || int(t) >= len(dtypeBits) {
		return 0
	}
	return dtypeBits[t]
}

// Bytes returns the size of n packed elements in bytes, rounded up.
func (t DType) Bytes(n int) int { return (n*t.Bits() + 7) / 8 }

// ParseDType returns the type with the given name.
func ParseDType(s string) (DType, error) {
	i, err := enumCode(dtypeNames[:], s, "dtype")
	return DType(i), err
}

// DTypes are the element types of a model.
type DTypes struct {
	Weights     DType // of the tensors of the checkpoint, as they are packed
	Activations DType // of what stages publish to each other
	Cache       DType // of rows of K and V
}

// Uniform is one type for all.
func Uniform(d DType) DTypes { return DTypes{d, d, d} }

// IsUniform reports whether all are one type.
func (t DTypes) IsUniform() bool { return t == Uniform(t.Weights) }

// OnDevice reports whether the kernel has code for the types: one for all, or one for all but a cache of integers.
func (t DTypes) OnDevice() bool {
	return t.IsUniform() || t == DTypes{t.Weights, t.Weights, I8}
}

// String is the name of the type if all are the same, and otherwise all names, in words.
func (t DTypes) String() string {
	switch {
	case t.IsUniform():
		return t.Weights.String()
	case t.OnDevice():
		return fmt.Sprintf("%s, a cache of %s", t.Weights, t.Cache)
	}
	return fmt.Sprintf("%s weights, %s activations and %s rows of the cache", t.Weights, t.Activations, t.Cache)
}

// Space is the kind of memory that holds a buffer.
type Space int

const (
	HBM           Space = iota // weights, KV cache, inputs and outputs
	GlobalScratch              // activations that several SMs exchange
	SMEM                       // sharded over SMs: every element has one owner SM
	Register                   // lowering hint of the AMK profile
	PeerScratch                // what ranks exchange: a store goes to the memory of each, a load comes from its own
)

var spaceNames = [...]string{"HBM", "GLOBAL_SCRATCH", "SMEM", "REGISTER", "PEER_SCRATCH"}

func (s Space) String() string { return enumName(spaceNames[:], int(s)) }

// ParseSpace returns the space with the given name.
func ParseSpace(s string) (Space, error) {
	i, err := enumCode(spaceNames[:], s, "space")
	return Space(i), err
}

// BufferKind is the purpose of a buffer. It determines which tasks may write it.
type BufferKind int

const (
	Weight BufferKind = iota
	Activation
	KVCache
	Input
	Output
	Const
	Recurrent // what a task of each step makes of what that of the step before has left
)

var kindNames = [...]string{"WEIGHT", "ACTIVATION", "KV_CACHE", "IO_INPUT", "IO_OUTPUT", "CONST", "STATE"}

func (k BufferKind) String() string { return enumName(kindNames[:], int(k)) }

// ReadOnly reports whether no task of a step may write buffers of this kind.
func (k BufferKind) ReadOnly() bool { return k == Weight || k == Const || k == Input }

// OfSequences reports whether each sequence of a pass has such a buffer for itself, from step to step.
func (k BufferKind) OfSequences() bool { return k == KVCache || k == Recurrent }

// ParseBufferKind returns the kind with the given name.
func ParseBufferKind(s string) (BufferKind, error) {
	i, err := enumCode(kindNames[:], s, "buffer kind")
	return BufferKind(i), err
}

func enumName(names []string, code int) string {
	if code < 0 || code >= len(names) {
		return fmt.Sprintf("#%d", code)
	}
	return names[code]
}

func enumCode(names []string, s, what string) (int, error) {
	for i, n := range names {
		if n == s {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q, want one of %v", what, s, names)
}

// The names are what JSON has of these types.

func (t DType) MarshalText() ([]byte, error)      { return []byte(t.String()), nil }
func (s Space) MarshalText() ([]byte, error)      { return []byte(s.String()), nil }
func (k BufferKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (t *DType) UnmarshalText(name []byte) (err error) {
	*t, err = ParseDType(string(name))
	return err
}

// UnmarshalText reads a space of the AMK profile, which has no ranks.
func (s *Space) UnmarshalText(name []byte) error {
	i, err := enumCode(spaceNames[:PeerScratch], string(name), "space")
	*s = Space(i)
	return err
}

func (k *BufferKind) UnmarshalText(name []byte) (err error) {
	*k, err = ParseBufferKind(string(name))
	return err
}
