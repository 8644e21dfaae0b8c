package op

var EMBED = declare(Spec{
	Code: 2,
	Name: "EMBED",
	Doc: "Row ids[i] of the table, for each i. The first dimension of the table counts its V rows, and the others " +
		"are a row of n elements. The table is a view of a buffer. With scale, the elements times scale. With given, " +
		"an id may be V: then the result is row i of given, as it is.",
	Params: []Param{scale},
	Kernel: true,
	Forms: []Form{{
		In: []Operand{
			{Name: "ids", Shape: "[B*]", Role: Number, Elem: Index},
			{Name: "table", Shape: "[V,n*]", Role: Table},
			{Name: "given", Shape: "[B,n]", Optional: true},
		},
		Out:   results("[B,n]"),
		Shape: embedShape,
	}},
})

func embedShape(c *Call) (n, last int) {
	table := &c.In[1]
	if table.Temp {
		c.Fail("the table is a temporary, want a view of a buffer")
		return 0, 0
	}
	rows := table.Lens[0]
	if rows == 0 {
		c.Fail("the table has no rows, want at least the one that an id names")
		return 0, 0
	}
	if len(c.In) > 2 && rows > MaxIndex {
		c.Fail("the table has %d rows, want at most %d, so that an id can name what is given", rows, MaxIndex)
	}
	last = table.N() / rows
	n = c.product(c.In[0].N(), last)
	if len(c.In) > 2 && c.In[2].N() != n {
		c.Fail("given has %d elements, want %d, a row of %d for each of %d ids", c.In[2].N(), n, last, c.In[0].N())
	}
	return n, last
}
