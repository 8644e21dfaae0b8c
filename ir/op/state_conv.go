package op

var StateConv = declare(Spec{
	Code:   41,
	Name:   "STATE_CONV",
	Kernel: true,
	Doc: "SHORT_CONV where a state keeps the rows before x, those of the last R positions: that of position p is row " +
		"p mod R. The rows of x are at positions that follow one another, from pos on, and are kept in turn. Before " +
		"position 0 are zeros. A pass may begin again at any position of which the R − taps + 1 rows before are " +
		"those of the last passes.",
	Params: []Param{need(ownPos),
		need(Param{Key: "taps", Lo: 1, Hi: MaxInt, Doc: "how many rows a result is made of at most"})},
	Forms: []Form{{
		In: []Operand{{Name: "x", Shape: "[B,n]"}, {Name: "past", Shape: "[R,n]", Role: Kept},
			{Name: "w", Shape: "[n·taps]", Role: Gain}},
		Out:   []Operand{{Name: "out", Shape: "[B,n]"}, {Name: "past", Shape: " as it is read", Role: Kept}},
		Shape: stateConvShape,
	}},
})

// stateConvShape: past has room for the rows before those of x, and for these.
func stateConvShape(c *Call) (n, last int) {
	x, past, w, taps := &c.In[0], &c.In[1], c.In[2].N(), c.positive("taps")
	switch {
	case x.Last == 0 || x.Rows == 0 || w != c.product(x.Last, taps):
		c.Fail("x has %d rows of %d elements and w %d, want %d taps for each element of a row, and at least one "+
			"element", x.Rows, x.Last, w, taps)
	case past.Temp || past.Last != x.Last || past.Rows < taps-1+x.Rows:
		c.Fail("has %d rows of %d elements of the positions before, want at least %d of %d in memory", past.Rows,
			past.Last, taps-1+x.Rows, x.Last)
	}
	return x.N(), x.Last
}
