package op

var ALLREDUCE = declare(Spec{
	Code:   15,
	Name:   "ALLREDUCE_SHARD",
	Kernel: true,
	Doc: "The sum of all operands, added in their order. With pairs=1 they are as many as a power of two, and added " +
		"in pairs, then sums of pairs, and so on.",
	Params:    []Param{pairs},
	Pointwise: true,
	Forms: []Form{{In: []Operand{{Name: "x", Shape: "[n*]", Most: 8}}, Out: results("[n]"),
		Shape: func(c *Call) (n, last int) {
			if k := len(c.In); c.Int("pairs", 0) == 1 && k&(k-1) != 0 {
				c.Fail("has %d operands to be added in pairs, want as many as a power of two", k)
			}
			return same(c)
		}}},
})

var pairs = Param{Key: "pairs", Values: []Named{{0, "in their order"}, {1, "in pairs"}},
	Doc: "how operands are added up"}
