package op

var AttentionCombine = declare(Spec{
	Code: 18,
	Name: "ATTENTION_COMBINE",
	Doc: "Joins partial results of ATTENTION_TILE. With splits, acc and (m, l) of w elements of one head from that " +
		"number of splits; without, each operand is a whole partial result of n_heads heads, as in the AMK profile.",
	Params: []Param{
		{Key: "splits", Lo: 1, Hi: MaxInt, Doc: "how many partial results there are"},
		headDim, heads, kvHeads,
	},
	Kernel: true,
	Forms: []Form{{
		When:  "with splits",
		If:    func(_ int, args Args) bool { return args.Has("splits") },
		In:    []Operand{{Name: "acc", Shape: "[splits,1,w*]"}, {Name: "ml", Shape: "[splits,1,2]"}},
		Out:   results("[w]"),
		Shape: combineSplits,
	}, {
		When:  "without splits",
		In:    []Operand{{Name: "partial", Shape: "[n_heads,head_dim+2]", Most: Unbounded}},
		Out:   results("[n_heads,head_dim]"),
		Shape: combineWhole,
	}},
})

func combineSplits(c *Call) (n, last int) {
	s, acc := c.positive("splits"), c.In[0].N()
	if !(acc%s == 0 && c.In[1].N() == 2*s) {
		c.Fail("with splits=%d takes acc[%d,1,w] and ml[%d,1,2]", s, s, s)
	}
	return acc / s, acc / s
}

func combineWhole(c *Call) (n, last int) {
	hd, nh := c.positive("head_dim"), c.positive("n_heads")
	for i := range c.In {
		if c.In[i].N() != nh*(hd+2) {
			c.Fail("partial %d has %d elements, want n_heads*(head_dim+2) = %d", i+1, c.In[i].N(), nh*(hd+2))
		}
	}
	return nh * hd, hd
}
