package op

var LAYERNORM = declare(Spec{
	Code: 4,
	Name: "LAYERNORM",
	Doc: "(x − mean(x)) · rsqrt(variance(x) + eps) · w + b, per row of n elements; with unit_offset=1, times 1 + w. " +
		"The variance divides by n. Without w, rows are neither multiplied nor shifted.",
	Params: []Param{need(eps), unitOffset},
	Kernel: true,
	Forms: []Form{{
		In: []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain, Optional: true},
			{Name: "b", Shape: "[n]", Role: Gain, Optional: true}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})
