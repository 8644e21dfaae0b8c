package op

var TOPK = declare(Spec{
	Code: 29,
	Name: "TOPK",
	Doc: "The k largest elements of each row of x, the largest first, and their numbers, which are distinct. The " +
		"order is total: −0 is 0, of equal elements the one with the lower number comes first, and those that are " +
		"not numbers come after all others, by their numbers too.",
	Params: []Param{need(Param{Key: "k", Lo: 1, Hi: MaxInt, Doc: "the number of elements of a row that are chosen"})},
	Kernel: true,
	Forms: []Form{{
		In: []Operand{{Name: "x", Shape: "[B,n]"}},
		Out: []Operand{{Name: "value", Shape: "[B,k]"},
			{Name: "index", Shape: "[B,k]", Elem: Index}},
		Shape: func(c *Call) (n, last int) {
			k := c.positive("k")
			if k > c.In[0].Last {
				c.Fail("chooses %d of rows of %d elements, want at most as many", k, c.In[0].Last)
			}
			c.numbered(c.In[0].Last)
			return c.product(c.In[0].Rows, k), k
		},
	}},
})
