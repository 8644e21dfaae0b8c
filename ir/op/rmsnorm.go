package op

var RMSNORM = declare(Spec{
	Code: 3,
	Name: "RMSNORM",
	Doc: "x · rsqrt(mean(x²) + eps) · w, per row of n elements; with unit_offset=1, times 1 + w. With head_dim, a " +
		"row of x is heads one after the other: each is normalised by itself, and all have the same w.",
	Params: []Param{need(eps), headDim, unitOffset},
	Kernel: true,
	Forms: []Form{{
		When:  "with head_dim",
		If:    func(_ int, args Args) bool { return args.Has("head_dim") },
		In:    []Operand{{Name: "x", Shape: "[B,heads*,head_dim]"}, {Name: "w", Shape: "[head_dim]", Role: Gain}},
		Out:   results("[B,heads,head_dim]"),
		Shape: normHeads,
	}, {
		When:  "without head_dim",
		In:    []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})

// normHeads: rows of x are whole heads, and w is one.
func normHeads(c *Call) (n, last int) {
	hd, w, x := c.positive("head_dim"), c.In[1].N(), &c.In[0]
	if w != hd {
		c.Fail("w has %d elements, want head_dim = %d", w, hd)
	}
	if x.Last%hd != 0 {
		c.Fail("x has rows of %d elements, want whole heads of %d", x.Last, hd)
	}
	return x.N(), x.Last
}
