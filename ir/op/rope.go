package op

var ROPE = declare(Spec{
	Code: 8,
	Name: "ROPE",
	Doc: "Rotary position embedding; head_dim is even. With order=1, x holds rotation pairs side by side. Its first " +
		"element is row first, which is even, of a vector of which the rows below limit are rotated by the angle pos " +
		"· inv_freq[(row % head_dim)/2]; whole pairs are, and the other rows pass through. Without limit, all are " +
		"rotated. With order=0, the AMK profile's, elements j and j+head_dim/2 of a head are a pair, theta gives the " +
		"frequencies, and the second operand the position of each of B rows.",
	Params: []Param{
		need(headDim),
		need(Param{Key: "order", Lo: 0, Hi: 1, Doc: "how rotation pairs lie in x"}),
		first,
		{Key: "limit", Lo: 0, Hi: MaxInt, Doc: "the first row that is not rotated"},
		{Key: "pos", Lo: 0, Hi: MaxInt, Moves: true, Doc: "the position that is rotated to"},
		{Key: "theta", Real: true, Sign: Positive, Doc: "is raised to powers: the base of the frequencies"},
	},
	Kernel: true,
	Forms: []Form{{
		When:  "with order=1",
		If:    func(_ int, args Args) bool { return args.Int("order", 0) != 0 },
		In:    []Operand{{Name: "x", Shape: "[n*]"}, {Name: "inv_freq", Shape: "[head_dim/2]", Role: Angle}},
		Out:   results("[n]"),
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
	if c.In[1].N() != hd/2 {
		c.Fail("inv_freq has %d elements, want head_dim/2 = %d", c.In[1].N(), hd/2)
	}
	if x.N()%2 != 0 {
		c.Fail("x has %d elements, want rotation pairs", x.N())
	}
	first := c.Int("first", 0)
	if turned := max(0, min(x.N(), c.Int("limit", first+x.N())-first)); first < 0 || first%2 != 0 || turned%2 != 0 {
		c.Fail("turns %d elements from row %d on, want whole pairs", turned, first)
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
