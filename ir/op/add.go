package op

var ADD = declare(Spec{
	Code: 11,
	Name: "ADD",
	Doc: "x + y, which is as long as x, or one row that is added to each row of x, such as a bias. A third operand " +
		"is one number that the sum is multiplied by.",
	Pointwise: true,
	Kernel:    true,
	Forms: []Form{{
		In: []Operand{{Name: "x", Shape: "[B*,n]"}, {Name: "y", Shape: "[B,n] or [n]"},
			{Name: "factor", Shape: "[1]", Role: Gain, Optional: true}},
		Out:   results("[B,n]"),
		Shape: sum,
	}},
})

func sum(c *Call) (n, last int) {
	if x, y := &c.In[0], c.In[1].N(); y != x.N() && (y != x.Last || y == 0) {
		c.Fail("operands have %d and %d elements, want as many, or one row of %d", x.N(), y, x.Last)
	}
	if len(c.In) == 3 && c.In[2].N() != 1 {
		c.Fail("multiplies the sum by %d elements, want one", c.In[2].N())
	}
	return asFirst(c)
}
