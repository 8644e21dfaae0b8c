package op

var SIGMOID = declare(Spec{
	Code:      34,
	Name:      "SIGMOID",
	Doc:       "1 / (1 + exp(−x)).",
	Pointwise: true,
	Kernel:    true,
	Forms:     []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: asFirst}},
})
