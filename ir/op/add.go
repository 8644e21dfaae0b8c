package op

var ADD = declare(Spec{
	Code:      11,
	Name:      "ADD",
	Doc:       "x + y.",
	Pointwise: true,
	Kernel:    true,
	Forms: []Form{{
		In:    []Operand{{Name: "x", Shape: "[n*]"}, {Name: "y", Shape: "[n]"}},
		Out:   results("[n]"),
		Shape: same,
	}},
})
