package op

var ShortConv = declare(Spec{
	Code:   36,
	Name:   "SHORT_CONV",
	Kernel: true,
	Doc: "A causal convolution along the rows of x, of each column by taps of its own: the last of them multiplies " +
		"the element itself, the one before it that of the row before, and so on, and a bias is added. Before the " +
		"first row of x are those of past, in their order, and before these are zeros. Products are added from the " +
		"first tap on.",
	Params: []Param{need(Param{Key: "taps", Lo: 1, Hi: MaxInt, Doc: "how many rows a result is made of at most"})},
	Forms: []Form{{
		In: []Operand{
			{Name: "x", Shape: "[B,n]"},
			{Name: "past", Shape: "[rows*,1,n]", Role: Cache},
			{Name: "w", Shape: "[n·taps]", Role: Gain},
			{Name: "bias", Shape: "[n]", Role: Gain, Optional: true},
		},
		Out:   results("[B,n]"),
		Shape: convShape,
	}},
})

// convShape: rows of x and of past are equally long, those of past are of one head, and w has taps for each column.
func convShape(c *Call) (n, last int) {
	x, past, w, taps := &c.In[0], &c.In[1], c.In[2].N(), c.positive("taps")
	if x.Last == 0 || w != c.product(x.Last, taps) {
		c.Fail("x has rows of %d elements and w %d, want %d taps for each element of a row, and at least one element",
			x.Last, w, taps)
	}
	if past.Temp || !past.isCache(1, 1, x.Last) {
		c.Fail("operand 2 has the shape %s, want %s", past.cacheShape(), cacheForms(1, 1, x.Last))
	}
	if len(c.In) > 3 && c.In[3].N() != x.Last {
		c.Fail("has a bias of %d elements for rows of %d, want as many", c.In[3].N(), x.Last)
	}
	return x.N(), x.Last
}
