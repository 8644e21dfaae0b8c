package op

var MUL = declare(Spec{
	Code:      12,
	Name:      "MUL",
	Doc:       "x · y; of one operand, x · scale.",
	Params:    []Param{scale},
	Pointwise: true,
	Kernel:    true,
	Finisher:  &Finisher{Func: "scale", Result: "scaled", Args: []string{"scale"}},
	Forms: []Form{{
		In:    []Operand{{Name: "x", Shape: "[n*]"}, {Name: "y", Shape: "[n]", Optional: true}},
		Out:   results("[n]"),
		Shape: same,
	}},
})
