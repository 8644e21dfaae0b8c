package op

var STOP = declare(Spec{
	Code: 21,
	Name: "STOP",
	Doc: "1 for each token that ends a run, and 0 for each other. Where last is not 0 all do, and otherwise those " +
		"that are among ids.",
	Kernel: true,
	Forms: []Form{{
		In: []Operand{
			{Name: "tokens", Shape: "[B*]", Elem: Index},
			{Name: "ids", Shape: "[n*]", Role: Number, Elem: Index},
			{Name: "last", Shape: "[1]", Role: Number, Elem: Index},
		},
		Out: []Operand{{Name: "stop", Shape: "[B]", Elem: Index, Most: 4}},
		Shape: func(c *Call) (n, last int) {
			if c.In[2].N() != 1 {
				c.Fail("last has %d elements, want 1", c.In[2].N())
			}
			return asFirst(c)
		},
	}},
})
