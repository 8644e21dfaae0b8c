package op

import "fmt"

// A View is the shape of an operand in rules. It is the same at all positions: a dimension that may depend on the
// position counts as one element.
type View struct {
	Rows, Last int   // the last dimension, and the product of all others
	Temp       bool  // it is a temporary
	Lens       []int // the lengths of all dimensions; only of a Table or a Cache that is not a temporary
	Dealt      uint8 // its dimensions, as bits, that are distributed in blocks; of these only
}

// N is the number of elements.
func (v *View) N() int { return v.Rows * v.Last }

// RowsOf returns the dimension of a cache view that counts rows: the first of [rows, head_dim] and of [rows, heads,
// head_dim], the second of a view of four dimensions, and the third of five.
func RowsOf(rank int) int { return max(0, rank-3) }

// Args are the parameters of an op in a program.
type Args interface {
	Int(key string, absent int) int
	Has(key string) bool
}

// A Call is an op of a program, the input of a Shape rule.
type Call struct {
	Args
	In      []View
	Outputs int // how many
	problem string
}

// Begin prepares the call for another op; the caller then appends the views of its inputs.
func (c *Call) Begin(args Args, outputs int) {
	c.Args, c.In, c.Outputs, c.problem = args, c.In[:0], outputs, ""
}

// Problem is the first problem that was reported, or "".
func (c *Call) Problem() string { return c.problem }

// Fail reports a problem. Call it only after a failed comparison: its arguments are boxed.
func (c *Call) Fail(format string, args ...any) {
	if c.problem == "" {
		c.problem = fmt.Sprintf(format, args...)
	}
}

// Result applies a form to the operands, and returns the number of elements of the result and of its last dimension.
// The number of operands must be valid for the op, but need not be valid for the form.
func (c *Call) Result(f *Form) (n, last int) {
	switch {
	case f.Shape == nil:
	case f.When != "" && !f.NIn.Has(len(c.In)):
		c.Fail("%s has %d inputs, want %v", f.When, len(c.In), f.NIn)
	case f.When != "" && !f.NOut.Has(c.Outputs):
		c.Fail("%s has %d outputs, want %v", f.When, c.Outputs, f.NOut)
	default:
		return f.Shape(c)
	}
	return 0, 0
}

// positive reads a parameter that sizes are calculated with.
func (c *Call) positive(key string) int {
	n := c.Int(key, 0)
	if !(n > 0 && n <= MaxInt) {
		c.Fail("%s is %d, want a positive number", key, n)
	}
	return max(1, min(n, MaxInt))
}

// rowsOf is how many of the rows of an operand are meant: rows from first_row on, or all.
func (c *Call) rowsOf(all int) int {
	if !c.Has("rows") {
		if c.Has("first_row") {
			c.Fail("has first_row and no parameter rows, want both or none")
		}
		return all
	}
	from, n := c.Int("first_row", 0), c.Int("rows", 0)
	if from < 0 || n < 1 || n > all-from {
		c.Fail("takes %d rows from row %d on, of %d; want rows that are there", n, from, all)
	}
	return max(0, min(n, all))
}

// numbered holds the numbers of n elements, from parameter first on, to what an I32 can name.
func (c *Call) numbered(n int) {
	if first := c.Int("first", 0); n > 0 && n-1 > MaxIndex-first {
		c.Fail("numbers %d elements from %d on, want numbers of at most %d, which an index of type I32 can be", n,
			first, MaxIndex)
	}
}

// product is the size of a result, which is bounded like that of a buffer: temporaries could multiply without end.
func (c *Call) product(n, m int) int {
	if !(m == 0 || n <= MaxElements/m) {
		c.Fail("the result has %d times %d elements, want at most %d", n, m, MaxElements)
		return 0
	}
	return n * m
}

// asFirst is the shape rule of ops whose result is like their first operand.
func asFirst(c *Call) (n, last int) { return c.In[0].N(), c.In[0].Last }

// same is the shape rule of ops whose operands and result are equally long.
func same(c *Call) (n, last int) {
	for i := range c.In {
		if c.In[i].N() != c.In[0].N() {
			c.Fail("operands have %d and %d elements, want as many", c.In[0].N(), c.In[i].N())
		}
	}
	return c.In[0].N(), c.In[0].Last
}

// norm is the shape rule of the norms: rows of x are as long as each of the gains, if there are any.
func norm(c *Call) (n, last int) {
	x := c.In[0].N()
	if len(c.In) == 1 {
		return x, c.In[0].Last
	}
	w := c.In[1].N()
	for i := 1; i < len(c.In); i++ {
		if g := c.In[i].N(); !(g > 0 && g == w && x%g == 0) {
			c.Fail("x has %d elements and w %d; x must be whole rows as long as w", x, g)
		}
	}
	return x, w
}

// groups holds scales and zeros, the inputs from some number on, to a quantised [n,K]: one per group of columns.
func (c *Call) groups(from, n, k int) {
	group := c.positive("group")
	for i := from; i < len(c.In); i++ {
		if c.In[i].N() != n*((k+group-1)/group) {
			c.Fail("scales or zeros have %d elements, want %d rows of %d groups", c.In[i].N(), n, (k+group-1)/group)
		}
	}
}
