package op

var SumRows = declare(Spec{
	Code:   32,
	Name:   "SUM_ROWS",
	Doc:    "The sum of each `parts` rows of x, which are added in their order.",
	Params: []Param{need(parts)},
	Kernel: true,
	Forms: []Form{{
		In:  []Operand{{Name: "x", Shape: "[B*,parts,n*]"}},
		Out: results("[B,n]"),
		Shape: func(c *Call) (n, last int) {
			parts, x := c.positive("parts"), &c.In[0]
			if x.Rows%parts != 0 {
				c.Fail("x has %d rows, want a multiple of %d", x.Rows, parts)
			}
			return x.Rows / parts * x.Last, x.Last
		},
	}},
})
