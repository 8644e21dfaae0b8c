package op

var GEMM = declare(Spec{
	Code:   6,
	Name:   "GEMM_TILE",
	Doc:    "GEMV_TILE of each row of x.",
	Params: []Param{qdtype, group, parts},
	Kernel: true,
	Forms:  products("[B,K]", "[B,n]", func(*Call) {}),
})

// products are the forms of a product with a matrix: quantised and plain. rows says which numbers of rows x may have.
func products(x, out string, rows func(*Call)) []Form {
	product := func(c *Call, rest func(*Call)) (n, last int) {
		w, k := &c.In[1], c.In[1].Last
		if x := c.In[0].N(); !(k > 0 && x%k == 0 && x > 0) {
			c.Fail("x has %d elements, K is %d: x must be whole rows of K", x, k)
			return 0, 0
		}
		if parts := c.Int("parts", 1); parts < 1 || parts&(parts-1) != 0 || k%parts != 0 {
			c.Fail("K is %d, in %d parts: want equal parts, as many as a power of two", k, parts)
			return 0, 0
		}
		rows(c)
		rest(c)
		return c.product(c.In[0].N()/k, w.Rows), w.Rows
	}
	return []Form{{
		When: "with qdtype",
		If:   func(_ int, args Args) bool { return args.Has("qdtype") },
		In: []Operand{
			{Name: "x", Shape: x},
			{Name: "W", Shape: "[n*,K]", Role: Matrix, Elem: Quantised},
			{Name: "scales", Shape: "[n,⌈K/group⌉]", Role: Scale, Optional: true},
			{Name: "zeros", Shape: "[n,⌈K/group⌉]", Role: Scale, Elem: Any, Optional: true},
		},
		Out:   results(out),
		Shape: func(c *Call) (n, last int) { return product(c, scaled) },
	}, {
		When: "without qdtype",
		In: []Operand{
			{Name: "x", Shape: x},
			{Name: "W", Shape: "[n*,K]", Role: Matrix},
			{Name: "bias", Shape: "[n]", Role: Scale, Optional: true},
		},
		Out:   results(out),
		Shape: func(c *Call) (n, last int) { return product(c, biased) },
	}}
}

func scaled(c *Call) { c.groups(2, c.In[1].Rows, c.In[1].Last) }

func biased(c *Call) {
	if len(c.In) == 3 && c.In[2].N() != c.In[1].Rows {
		c.Fail("the bias has %d elements, n is %d", c.In[2].N(), c.In[1].Rows)
	}
}
