package ir

import "amkc/ir/op"

// Opcode names an operation by its number in the AMK IR (IR specification, section 7; the registry in AutoMegaKernel
// 0.4.0 adds FUSED). Operands are views: the elements an op touches are exactly those its views name, so that a
// footprint needs no parameter beyond them. All arithmetic is float32.
type Opcode int

// The opcodes. Package op declares each in a file of its own; docs/ir.md prints the declarations.
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
	numOpcodes
)

// Ops holds the declaration of every opcode.
var Ops = [numOpcodes]*op.Spec{
	NOP:              op.NOP,
	COPY:             op.COPY,
	EMBED:            op.EMBED,
	RMSNORM:          op.RMSNORM,
	LAYERNORM:        op.LAYERNORM,
	GEMV:             op.GEMV,
	GEMM:             op.GEMM,
	ATTENTION:        op.ATTENTION,
	ROPE:             op.ROPE,
	SiluMul:          op.SiluMul,
	GELU:             op.GELU,
	ADD:              op.ADD,
	MUL:              op.MUL,
	DEQUANT:          op.DEQUANT,
	SOFTMAX:          op.SOFTMAX,
	ALLREDUCE:        op.ALLREDUCE,
	KVAppend:         op.KVAppend,
	ArgMax:           op.ArgMax,
	AttentionCombine: op.AttentionCombine,
	FUSED:            op.FUSED,
}

var opcodeNames = func() (names [numOpcodes]string) {
	for c, spec := range Ops {
		names[c] = spec.Name
	}
	return names
}()

func (o Opcode) String() string { return enumName(opcodeNames[:], int(o)) }

// ParseOpcode returns the opcode with the given name.
func ParseOpcode(s string) (Opcode, error) {
	i, err := enumCode(opcodeNames[:], s, "opcode")
	return Opcode(i), err
}
