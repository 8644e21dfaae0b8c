package op

var ScaleBlocks = declare(Spec{
	Code: 33,
	Name: "SCALE_BLOCKS",
	Doc: "x times y. A row of x is part of a longer vector, and its first element has number first. Each `block` " +
		"elements of that vector are multiplied by one element of the row of y.",
	Params: []Param{first, need(block)},
	Kernel: true,
	Forms: []Form{{
		In:  []Operand{{Name: "x", Shape: "[B,n*]"}, {Name: "y", Shape: "[B,m]"}},
		Out: results("[B,n]"),
		Shape: func(c *Call) (n, last int) {
			block, from := c.positive("block"), c.Int("first", 0)
			x, y := &c.In[0], &c.In[1]
			if y.Rows != x.Rows {
				c.Fail("x has %d rows and y %d, want as many", x.Rows, y.Rows)
			}
			if c.numbered(x.Last); x.Last > 0 && (from < 0 || (from+x.Last-1)/block >= y.Last) {
				c.Fail("takes elements %d to %d of a vector of %d blocks of %d, want those that are there", from,
					from+x.Last-1, y.Last, block)
			}
			return x.N(), x.Last
		},
	}},
})
