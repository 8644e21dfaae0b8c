package op

var KVAppend = declare(Spec{
	Code: 16,
	Name: "KV_APPEND",
	Doc: "Writes x to rows of a cache, and nothing if the view is empty. Each dimension of that view may have one " +
		"element at some positions and none at others. If a dimension is distributed to parts, x has elements for " +
		"the whole interval, and those of other parts are ignored. If rows of the cache are integers with a scale, " +
		"the scale is the largest magnitude of the row over 127, as a BF16, and elements are rounded to multiples " +
		"of it, to nearest, ties to even. With rows, x has rows of its last dimension, and that many of them are " +
		"used, from row first_row on.",
	Params: []Param{firstRow, rowCount},
	Kernel: true,
	Forms: []Form{{
		In:    []Operand{{Name: "x", Shape: "[n*]"}},
		Out:   []Operand{{Name: "rows", Shape: "[n] or a share of it, or empty", Role: Appended}},
		Shape: appendedShape,
	}},
})

// appendedShape: as many elements as x has, or as its rows that are meant.
func appendedShape(c *Call) (n, last int) {
	x := &c.In[0]
	rows := x.Rows
	if x.Last == 0 {
		rows = 0 // of no elements: nothing is there that could be meant
	}
	return c.rowsOf(rows) * x.Last, x.Last
}
