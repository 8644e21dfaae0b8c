package op

var SOFTMAX = declare(Spec{
	Code:   14,
	Name:   "SOFTMAX",
	Doc:    "exp(x − max) / Σ exp(x − max), over the last dimension.",
	Kernel: true,
	Forms:  []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: asFirst}},
})
