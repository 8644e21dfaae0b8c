package simulate

import (
	"amkc/ir"
	"amkc/ir/op"
)

// traits are what the oracle knows of an op, apart from what the op declares and from what refvm computes: they are
// what the proofs are measured against.
type traits struct {
	asLong bool // the result is as long as the first operand
	gated  bool // so it is of two operands, and half as long as one that holds both
	// inPlace: an element of the result needs the same element of each operand and no other, so that a result may take
	// the place of an operand.
	inPlace bool
	ahead   []int // the inputs that the kernel reads ahead of every wait: matrices, tables, norms, frequencies, caches
}

var known = map[*op.Spec]traits{
	op.COPY:      {asLong: true, inPlace: true},
	op.EMBED:     {ahead: []int{1}},
	op.RMSNORM:   {asLong: true, ahead: []int{1}},
	op.LAYERNORM: {asLong: true, ahead: []int{1, 2}},
	op.GEMV:      {ahead: []int{1}},
	op.ATTENTION: {ahead: []int{1, 2}},
	op.ROPE:      {asLong: true, ahead: []int{1}},
	op.SiluMul:   {gated: true, inPlace: true}, // of two operands; one has another length than the result

	op.GeluTanhMul: {gated: true, inPlace: true},
	op.GELU:        {asLong: true, inPlace: true},
	op.GeluTanh:    {asLong: true, inPlace: true},
	op.ReLU:        {asLong: true, inPlace: true},
	op.ReLU2:       {asLong: true, inPlace: true},
	op.XIELU:       {asLong: true, ahead: []int{1}},
	op.ADD:         {asLong: true, inPlace: true},
	op.MUL:         {asLong: true, inPlace: true},
	op.DEQUANT:     {asLong: true},
	op.SOFTMAX:     {asLong: true},
	op.ALLREDUCE:   {asLong: true, inPlace: true},
	op.SoftCap:     {asLong: true, inPlace: true},
	op.Clip:        {asLong: true, inPlace: true},
	op.STOP:        {asLong: true},
}

// traitsOf are those of an opcode; none of one that nothing is known of.
func traitsOf(c ir.Opcode) traits {
	if c < 0 || int(c) >= len(ir.Ops) {
		return traits{}
	}
	return known[ir.Ops[c]]
}
