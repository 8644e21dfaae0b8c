package ir

import (
	"slices"

	"amkc/ir/op"
)

// Opcode names an operation by its number in the AMK IR (IR specification, section 7; the registry in AutoMegaKernel
// 0.4.0 adds FUSED). Operands are views: the elements an op touches are exactly those its views name, so that a
// footprint needs no parameter beyond them. All arithmetic is float32.
type Opcode int

// Opcodes that Go code asks for or builds programs with, by the codes of their declarations. An op that no pass and no
// rule knows by name needs none.
const (
	NOP Opcode = iota
	COPY
	EMBED
	RMSNORM
	LAYERNORM
	GEMV
	GEMM
	ATTENTION
	ROPE
	SiluMul
	GELU
	ADD
	MUL
	DEQUANT
	SOFTMAX
	ALLREDUCE
	KVAppend
	ArgMax
	AttentionCombine
	FUSED
	SoftCap
	STOP
	GeluTanhMul
	GeluTanh
	ReLU
	ReLU2
	CLIP
	XIELU
	SAMPLE
	TOPK
	RENORMALISE
	SELECTED
	SumRows
	ScaleBlocks
	SIGMOID
	ClampedSiluMul
	ShortConv
	SILU
	L2NORM
	DECAY
	RECURRENCE
	StateConv
)

// Ops holds the declaration of every opcode, at its number. Package op has a file for each; docs/ir.md prints them.
var Ops = op.All()

// FinishedBy returns the op that a function of the device runtime computes on finished rows, or nil. Nodes of the graph
// and calls in the emitted code have the name of the function.
func FinishedBy(function string) *op.Spec {
	i := slices.IndexFunc(Ops, func(s *op.Spec) bool { return s.Finisher != nil && s.Finisher.Func == function })
	if i < 0 {
		return nil
	}
	return Ops[i]
}

var opcodeNames = func() []string {
	names := make([]string, len(Ops))
	for c, spec := range Ops {
		names[c] = spec.Name
	}
	return names
}()

// SamplingWords is the number of elements of a sequence's settings, by which SAMPLE chooses.
const SamplingWords = op.SamplingWords

// Chooses reports whether an op chooses among the elements of rows, or finds the best among a part of them.
func (o Opcode) Chooses() bool { return o == ArgMax || o == SAMPLE }

func (o Opcode) String() string { return enumName(opcodeNames, int(o)) }

// ParseOpcode returns the opcode with the given name.
func ParseOpcode(s string) (Opcode, error) {
	i, err := enumCode(opcodeNames, s, "opcode")
	return Opcode(i), err
}

// MarshalText returns the name of the opcode, for JSON.
func (o Opcode) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o *Opcode) UnmarshalText(name []byte) (err error) {
	*o, err = ParseOpcode(string(name))
	return err
}
