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
	op.ADD:       {asLong: true, inPlace: true},
	op.MUL:       {asLong: true, inPlace: true},
	op.DEQUANT:   {asLong: true},
	op.SOFTMAX:   {asLong: true},
	op.ALLREDUCE: {asLong: true, inPlace: true},
	op.STOP:      {asLong: true},

	op.RENORMALISE: {asLong: true},
	op.TOPK:        {ahead: []int{1}},
	op.SELECTED:    {ahead: []int{1, 3}},
	op.ScaleBlocks: {asLong: true},
	op.SIGMOID:     {asLong: true, inPlace: true},
	op.ShortConv:   {asLong: true, ahead: []int{1, 2, 3}},
	op.SILU:        {asLong: true, inPlace: true},
	op.L2NORM:      {asLong: true},
	op.DECAY:       {asLong: true, ahead: []int{1, 2}},
	op.RECURRENCE:  {inPlace: true}, // what it keeps
	op.StateConv:   {inPlace: true, ahead: []int{2}},
}

// traitsOf are those of an opcode; none of one that nothing is known of. Those of an op on finished rows follow from
// its declaration, which TestPointwise of refvm holds to what the op computes.
func traitsOf(c ir.Opcode) traits {
	if c < 0 || int(c) >= len(ir.Ops) {
		return traits{}
	}
	spec := ir.Ops[c]
	t, is := known[spec]
	if f := spec.Finisher; !is && f != nil {
		if t = (traits{asLong: !spec.Gated(), gated: spec.Gated(), inPlace: spec.Pointwise}); f.Weights > 0 {
			t.ahead = []int{1}
		}
	}
	return t
}
