package op

var RMSNORM = declare(Spec{
	Name:   "RMSNORM",
	Doc:    "x · rsqrt(mean(x²) + eps) · w, per row of n elements.",
	Params: []Param{need(eps)},
	Kernel: true,
	Forms: []Form{{
		In:    []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})
