package op

var ClampedSiluMul = declare(Spec{
	Code: 35,
	Name: "CLAMPED_SILU_MUL",
	Doc: "g / (1 + exp(−scale · g)) · (u + 1), where g is min(gate, cap) and u is up, kept within −cap and cap. The " +
		"operand holds the two interleaved.",
	Params: []Param{need(bound), need(scale)},
	Kernel: true,
	Finisher: &Finisher{Func: "clamped_silu_mul", Row: true, Result: "act", Halves: true,
		Args: []string{"cap", "scale"}},
	Forms: []Form{{
		In:    []Operand{{Name: "x", Shape: "[B,2n*]"}},
		Out:   results("[B,n]"),
		Shape: interleaved,
	}},
})
