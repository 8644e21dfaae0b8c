package op

var COPY = declare(Spec{
	Code:      1,
	Name:      "COPY",
	Doc:       "x, element by element. Indices stay exact.",
	Pointwise: true,
	Kernel:    true,
	Forms: []Form{{
		In:    []Operand{{Name: "x", Shape: "[n*]", Elem: Any}},
		Out:   []Operand{{Name: "out", Shape: "[n]", Elem: AsInput, Most: 4}},
		Shape: asFirst,
	}},
})
