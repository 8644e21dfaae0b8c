package op

var DEQUANT = declare(Spec{
	Code:   13,
	Name:   "DEQUANT",
	Doc:    "(q − zero) · scale; element k of a row takes entry k/group of its row of scales and of zeros.",
	Params: []Param{need(qdtype), need(group)},
	Forms: []Form{{
		In: []Operand{
			{Name: "q", Shape: "[n*,K*]", Elem: Quantised},
			{Name: "scales", Shape: "[n,⌈K/group⌉]", Role: Scale},
			{Name: "zeros", Shape: "[n,⌈K/group⌉]", Role: Scale, Elem: Any, Optional: true},
		},
		Out: results("[n,K]"),
		Shape: func(c *Call) (n, last int) {
			c.groups(1, c.In[0].Rows, c.In[0].Last)
			return asFirst(c)
		},
	}},
})
