package op

var RMSNORM = declare(Spec{
	Code: 3,
	Name: "RMSNORM",
	Doc: "x · rsqrt(mean(x²) + eps) · w, per row of n elements. With head_dim, x is heads one after the other: each " +
		"is a row by itself, and all have the same w.",
	Params: []Param{need(eps), headDim},
	Kernel: true,
	Forms: []Form{{
		When:  "with head_dim",
		If:    func(_ int, args Args) bool { return args.Has("head_dim") },
		In:    []Operand{{Name: "x", Shape: "[heads*,head_dim]"}, {Name: "w", Shape: "[head_dim]", Role: Gain}},
		Out:   results("[heads,head_dim]"),
		Shape: normHeads,
	}, {
		When:  "without head_dim",
		In:    []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})

// normHeads: x is whole heads, and w is one.
func normHeads(c *Call) (n, last int) {
	if hd, w := c.positive("head_dim"), c.In[1].N(); w != hd {
		c.Fail("w has %d elements, want head_dim = %d", w, hd)
	}
	return norm(c)
}
