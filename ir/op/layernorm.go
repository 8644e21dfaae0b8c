package op

var LAYERNORM = declare(Spec{
	Code:   4,
	Name:   "LAYERNORM",
	Doc:    "(x − mean(x)) · rsqrt(variance(x) + eps) · w + b, per row of n elements. The variance divides by n.",
	Params: []Param{need(eps)},
	Forms: []Form{{
		In: []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain},
			{Name: "b", Shape: "[n]", Role: Gain, Optional: true}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})
