package oracle

import "amkc/ir"

// traits are what the oracle knows of an op, apart from what the op declares and from what refvm computes: they are
// what the proofs are measured against.
type traits struct {
	asLong bool // the result is as long as the first operand
	// inPlace: an element of the result needs the same element of each operand and no other, so that a result may take
	// the place of an operand.
	inPlace bool
	ahead   []int // the inputs that the kernel reads ahead of every wait: matrices, tables, norms, frequencies, caches
}

var traitsOf = map[ir.Opcode]traits{
	ir.COPY:      {asLong: true, inPlace: true},
	ir.EMBED:     {ahead: []int{1}},
	ir.RMSNORM:   {asLong: true, ahead: []int{1}},
	ir.LAYERNORM: {asLong: true},
	ir.GEMV:      {ahead: []int{1}},
	ir.ATTENTION: {ahead: []int{1, 2}},
	ir.ROPE:      {asLong: true, ahead: []int{1}},
	ir.SiluMul:   {inPlace: true}, // of two operands; one has another length than the result
	ir.GELU:      {asLong: true, inPlace: true},
	ir.ADD:       {asLong: true, inPlace: true},
	ir.MUL:       {asLong: true, inPlace: true},
	ir.DEQUANT:   {asLong: true},
	ir.SOFTMAX:   {asLong: true},
	ir.ALLREDUCE: {asLong: true, inPlace: true},
}
