package op

var GELU = declare(Spec{
	Code:      10,
	Name:      "GELU",
	Doc:       "x · Φ(x), where Φ is the distribution function of the normal distribution; not the tanh form.",
	Pointwise: true,
	Forms:     []Form{{In: []Operand{{Name: "x", Shape: "[n*]"}}, Out: results("[n]"), Shape: asFirst}},
})
