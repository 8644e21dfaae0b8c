package op

var RMSNORM = declare(Spec{
	Code: 3,
	Name: "RMSNORM",
	Doc: "x · rsqrt(mean(x²) + eps) · w, per row of n elements; with unit_offset=1, times 1 + w. With head_dim, a " +
		"row of x is heads one after the other: each is normalised on its own, and w is that of each or of all, or " +
		"there is none. With a third operand, whose rows those of x are part of, the mean is that of its squares.",
	Params: []Param{need(eps), headDim, unitOffset},
	Kernel: true,
	Forms: []Form{{
		When:  "with head_dim",
		If:    func(_ int, args Args) bool { return args.Has("head_dim") },
		In:    []Operand{headsOf, {Name: "w", Shape: weightOfHeads, Role: Gain, Optional: true}},
		Out:   results("[B,heads,head_dim]"),
		Shape: normHeads,
	}, {
		When: "with three operands",
		If:   func(inputs int, _ Args) bool { return inputs == 3 },
		In: []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain},
			{Name: "whole", Shape: "[B,m]"}},
		Out:   results("[B,n]"),
		Shape: normPart,
	}, {
		When:  "without head_dim",
		In:    []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "w", Shape: "[n]", Role: Gain}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})

// normPart: rows of x are as long as w, and there are as many of the whole.
func normPart(c *Call) (n, last int) {
	x, w, whole := &c.In[0], c.In[1].N(), &c.In[2]
	if w != x.Last || w == 0 {
		c.Fail("x has rows of %d elements and w %d, want as many, and at least one", x.Last, w)
	}
	if whole.Rows != x.Rows || whole.Last == 0 {
		c.Fail("x has %d rows, and the whole %d of %d elements; want as many rows, with at least one element", x.Rows,
			whole.Rows, whole.Last)
	}
	return x.N(), x.Last
}

// What a norm of heads takes.
const weightOfHeads = "[head_dim] or [heads,head_dim]"

var headsOf = Operand{Name: "x", Shape: "[B,heads*,head_dim]"}

// normHeads: rows of x are whole heads, and weights are one or as many, all alike.
func normHeads(c *Call) (n, last int) {
	hd, x := c.positive("head_dim"), &c.In[0]
	for i := range c.In[1:] {
		if w := c.In[1+i].N(); w != hd && w != x.Last || w != c.In[1].N() {
			c.Fail("weight %d has %d elements, want head_dim = %d, or %d for all heads of a row, as the others", 1+i, w,
				hd, x.Last)
		}
	}
	if x.Last%hd != 0 {
		c.Fail("x has rows of %d elements, want whole heads of %d", x.Last, hd)
	}
	return x.N(), x.Last
}
