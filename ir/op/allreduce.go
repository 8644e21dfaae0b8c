package op

var ALLREDUCE = declare(Spec{
	Code:      15,
	Name:      "ALLREDUCE_SHARD",
	Doc:       "The sum of all operands, added in their order.",
	Pointwise: true,
	Forms:     []Form{{In: []Operand{{Name: "x", Shape: "[n*]", Most: 8}}, Out: results("[n]"), Shape: same}},
})
