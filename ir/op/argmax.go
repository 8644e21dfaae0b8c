package op

var ArgMax = declare(Spec{
	Code: 17,
	Name: "SAMPLE_ARGMAX",
	Doc: "The number of the largest element per row of x. With partial=1, the largest element per row and its " +
		"number, counted from first; −Inf and 2147483647, which is not an index, if no element is a number. Of " +
		"values and indices, the index of the largest value per row. Ties go to the lowest index; 0 where there is " +
		"none.",
	Params: []Param{
		{Key: "partial", Lo: 0, Hi: 1, Doc: "1: the operand is a part of the values"},
		first,
	},
	Forms: []Form{{
		When: "with partial=1",
		If:   func(_ int, args Args) bool { return args.Int("partial", 0) != 0 },
		In:   []Operand{{Name: "x", Shape: "[B,n*]"}},
		Out: []Operand{{Name: "value", Shape: "[B]"},
			{Name: "index", Shape: "[B]", Elem: Index}},
		Shape: func(c *Call) (n, last int) {
			c.numbered(c.In[0].Last)
			return c.In[0].Rows, c.In[0].Rows
		},
	}, {
		When: "with two operands",
		If:   func(inputs int, _ Args) bool { return inputs == 2 },
		In: []Operand{{Name: "values", Shape: "[B,m]"},
			{Name: "indices", Shape: "[B,m]", Role: Number, Elem: Index}},
		Out: []Operand{{Name: "index", Shape: "[B]", Elem: Index, Most: 4}},
		Shape: func(c *Call) (n, last int) {
			if !anyValue(c) {
				return 0, 0
			}
			asManyIndices(c)
			return c.In[0].Rows, c.In[0].Rows
		},
	}, {
		When: "with one operand",
		In:   []Operand{{Name: "x", Shape: "[B,n]"}},
		Out:  []Operand{{Name: "index", Shape: "[B]", Elem: Index, Most: 4}},
		Shape: func(c *Call) (n, last int) {
			if !anyValue(c) {
				return 0, 0
			}
			c.numbered(c.In[0].Last)
			return c.In[0].Rows, c.In[0].Rows
		},
	}},
})

func asManyIndices(c *Call) {
	if x, of := &c.In[0], &c.In[1]; x.N() != of.N() || x.Last != of.Last {
		c.Fail("has %d values and %d indices, in rows of %d and %d, want as many", x.N(), of.N(), x.Last, of.Last)
	}
}

func anyValue(c *Call) bool {
	if c.In[0].N() == 0 {
		c.Fail("has no values to choose from; with partial=1 it may have none")
		return false
	}
	return true
}
