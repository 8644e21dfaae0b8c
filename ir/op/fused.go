package op

var FUSED = declare(Spec{
	Code: 19,
	Name: "FUSED",
	Doc: "A recipe of the AMK profile, which no backend carries out: a program lists its steps as the ops of the " +
		"task instead.",
	Params: []Param{need(Param{Key: "recipe", Lo: -MaxInt, Hi: MaxInt, Doc: "the number of the recipe"})},
	Recipe: true,
	Forms: []Form{{
		In:  []Operand{{Name: "x", Shape: "[n*]", Elem: Any, Most: 8}},
		Out: []Operand{{Name: "out", Shape: "[n*]", Elem: Any}},
	}},
})
