package op

var RENORMALISE = declare(Spec{
	Code:   30,
	Name:   "RENORMALISE",
	Doc:    "x / Σ x, over the last dimension. Elements are added in their order.",
	Kernel: true,
	Forms:  []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: asFirst}},
})
