package op

var FUSED = declare(Spec{
	Code: 19,
	Name: "FUSED",
	Doc: "A recipe of the AMK profile. No backend runs it: a program lists the steps of the recipe as ops of the " +
		"task instead.",
	Params: []Param{need(Param{Key: "recipe", Lo: -MaxInt, Hi: MaxInt, Doc: "the number of the recipe"})},
	Recipe: true,
	Forms: []Form{{
		In:  []Operand{{Name: "x", Shape: "[n*]", Elem: Any, Most: 8}},
		Out: []Operand{{Name: "out", Shape: "[n*]", Elem: Any}},
	}},
})
