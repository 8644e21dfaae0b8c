package op

var SILU = declare(Spec{
	Code:      37,
	Name:      "SILU",
	Kernel:    true,
	Doc:       "x / (1 + exp(−x)).",
	Pointwise: true,
	Forms:     []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: asFirst}},
})
