package op

var SELECTED = declare(Spec{
	Code: 31,
	Name: "SELECTED_TILE",
	Doc: "Products of the rows of x with matrices of a family W of E, which ids select by number: the first N/R ids " +
		"are for the first row, and so on. The result of a row of x is x·Wᵀ with each of its matrices, one after " +
		"another: m = N/R·n elements, or with rows those from first_row on. The bias of a matrix is added to what it " +
		"makes, times element j of weights where that is of the matrix that the j-th id selects.",
	Params: []Param{firstRow, rowCount},
	Kernel: true,
	Forms: []Form{{
		In: []Operand{
			{Name: "x", Shape: "[R,K]"},
			{Name: "W", Shape: "[E,n,K]", Role: Table},
			{Name: "ids", Shape: "[N]", Role: Number, Elem: Index},
			{Name: "bias", Shape: "[E,n]", Role: Table, Optional: true},
			{Name: "weights", Shape: "[N]", Optional: true},
		},
		Out:   results("[R,m]"),
		Shape: selectedShape,
	}},
})

// selectedShape: x is rows as long as those of the matrices, each of which has as many ids as the others.
func selectedShape(c *Call) (n, last int) {
	w, x, ids := &c.In[1], c.In[0].N(), c.In[2].N()
	if len(w.Lens) != 3 || w.N() == 0 {
		c.Fail("takes a view of other than three dimensions, want E matrices of n rows of K elements")
		return 0, 0
	}
	if !(x > 0 && x%w.Last == 0) {
		c.Fail("x has %d elements, K is %d: x must be whole rows of K", x, w.Last)
		return 0, 0
	}
	rows := x / w.Last
	if !(ids > 0 && ids%rows == 0) {
		c.Fail("has %d ids for %d rows of x, want as many for each row, and at least one", ids, rows)
		return 0, 0
	}
	if len(c.In) > 3 {
		if b := c.In[3].Lens; len(b) != 2 || b[0] != w.Lens[0] || b[1] != w.Lens[1] {
			c.Fail("has biases of another shape than %d by %d, want a bias for each row of each matrix",
				w.Lens[0], w.Lens[1])
		}
	}
	if len(c.In) > 4 && c.In[4].N() != ids {
		c.Fail("has %d ids and %d weights, want as many", ids, c.In[4].N())
	}
	last = c.rowsOf(c.product(ids/rows, w.Lens[1]))
	return c.product(rows, last), last
}
