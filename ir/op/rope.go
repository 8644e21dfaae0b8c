package op

var ROPE = declare(Spec{
	Code: 8,
	Name: "ROPE",
	Doc: "Rotary position embedding; head_dim is even. With order=1, the two elements of a rotation pair are " +
		"adjacent in a row of x. A row of x is part of a longer vector: its first element has number first, which " +
		"is even. Elements below limit, or all without limit, are rotated in whole pairs by the angle pos · " +
		"inv_freq[(e % head_dim)/2], where e is the number of an element; the others are copied. If there are " +
		"fewer frequencies than pairs in a head, the remaining pairs of each head are copied as well. Several rows " +
		"need pos as a function of t. With order=0, which the AMK profile has, elements j and j+head_dim/2 of a " +
		"head are a pair, theta gives the frequencies, and the second operand has the position of each of B rows. " +
		"cos and sin are multiplied by scale, or 1 without it; what is copied is not.",
	Params: []Param{
		need(headDim),
		need(Param{Key: "order", Lo: 0, Hi: 1, Doc: "how rotation pairs are laid out in x"}),
		first,
		{Key: "limit", Lo: 0, Hi: MaxInt, Doc: "the first element that is not rotated"},
		ownPos,
		scale,
		{Key: "theta", Real: true, Sign: Positive, Doc: "the base of the frequencies"},
	},
	Kernel: true,
	Forms: []Form{{
		When:  "with order=1",
		If:    func(_ int, args Args) bool { return args.Int("order", 0) != 0 },
		In:    []Operand{{Name: "x", Shape: "[B,n*]"}, {Name: "inv_freq", Shape: "[turned]", Role: Angle}},
		Out:   results("[B,n]"),
		Shape: ropePairs,
	}, {
		When: "with order=0",
		In: []Operand{{Name: "x", Shape: "[B,heads*,head_dim]"},
			{Name: "positions", Shape: "[B]", Role: Angle, Elem: Index}},
		Out:   results("[B,heads,head_dim]"),
		Shape: ropeHalves,
	}},
})

func evenHead(c *Call) int {
	hd := c.positive("head_dim")
	if hd%2 != 0 {
		c.Fail("head_dim is %d, want an even number: a rotation turns pairs", hd)
	}
	return hd
}

func ropePairs(c *Call) (n, last int) {
	x, hd := &c.In[0], evenHead(c)
	if n := c.In[1].N(); n < 1 || n > hd/2 {
		c.Fail("inv_freq has %d elements, want 1 to head_dim/2 = %d", n, hd/2)
	}
	if x.Last%2 != 0 {
		c.Fail("x has rows of %d elements, want rotation pairs", x.Last)
	}
	c.numbered(x.Last)
	first := c.Int("first", 0)
	if turned := max(0, min(x.Last, c.Int("limit", first+x.Last)-first)); first < 0 || first%2 != 0 || turned%2 != 0 {
		c.Fail("turns %d elements from element %d on, want whole pairs", turned, first)
	}
	if x.Rows > 1 && !c.Has("pos") {
		c.Fail("x has %d rows and the op no parameter pos, want the position of each", x.Rows)
	}
	return x.N(), x.Last
}

func ropeHalves(c *Call) (n, last int) {
	x, at, hd := c.In[0].N(), c.In[1].N(), evenHead(c)
	if !(at > 0 && x%at == 0 && x/at%hd == 0) {
		c.Fail("x has %d elements for %d positions, want whole heads of %d for each, and at least one position", x, at,
			hd)
	}
	return x, hd
}
