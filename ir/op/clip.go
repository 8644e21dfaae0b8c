package op

var Clip = declare(Spec{
	Code:      26,
	Name:      "CLIP",
	Doc:       "x, or what is nearest to it between −cap and cap.",
	Params:    []Param{need(bound)},
	Pointwise: true,
	Kernel:    true,
	Finisher:  &Finisher{Func: "clip", Result: "clipped", Args: []string{"cap"}},
	Forms:     []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: same}},
})
