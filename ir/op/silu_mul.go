package op

var SiluMul = declare(Spec{
	Code:      9,
	Name:      "SILU_MUL",
	Doc:       "silu(gate) · up, where silu(g) = g / (1 + exp(−g)). One operand holds the two interleaved.",
	Pointwise: true,
	Kernel:    true,
	Finisher:  &Finisher{Func: "silu_mul", Row: true, Result: "act", Halves: true},
	Forms: []Form{{
		When: "with one operand",
		If:   func(inputs int, _ Args) bool { return inputs == 1 },
		In:   []Operand{{Name: "x", Shape: "[B,2n*]"}},
		Out:  results("[B,n]"),
		Shape: func(c *Call) (n, last int) {
			if last = c.In[0].Last; last%2 != 0 {
				c.Fail("one interleaved operand has rows of %d elements, want an even number", last)
			}
			return c.In[0].N() / 2, last / 2
		},
	}, {
		When:  "with two operands",
		In:    []Operand{{Name: "gate", Shape: "[n*]"}, {Name: "up", Shape: "[n]"}},
		Out:   results("[n]"),
		Shape: same,
	}},
})
