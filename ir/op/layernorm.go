package op

var LAYERNORM = declare(Spec{
	Code: 4,
	Name: "LAYERNORM",
	Doc: "(x − mean(x)) · rsqrt(variance(x) + eps) · w + b, per row of n elements; with unit_offset=1, times 1 + w. " +
		"The variance divides by n. Without w, rows are neither multiplied nor shifted. With head_dim, a row of x is " +
		"heads one after the other: each is normalised on its own, and w and b are those of each or of all.",
	Params: []Param{need(eps), headDim, unitOffset},
	Kernel: true,
	Forms: []Form{{
		When: "with head_dim",
		If:   func(_ int, args Args) bool { return args.Has("head_dim") },
		In: []Operand{headsOf, {Name: "w", Shape: weightOfHeads, Role: Gain},
			{Name: "b", Shape: weightOfHeads, Role: Gain, Optional: true}},
		Out:   results("[B,heads,head_dim]"),
		Shape: normHeads,
	}, {
		When: "without head_dim",
		In: []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain, Optional: true},
			{Name: "b", Shape: "[n]", Role: Gain, Optional: true}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})
