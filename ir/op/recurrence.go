package op

var L2NORM = declare(Spec{
	Code:   38,
	Name:   "L2NORM",
	Kernel: true,
	Doc: "x · rsqrt(Σ x² + eps) · scale, of each head of head_dim elements on its own. A row of x is heads one after " +
		"the other.",
	Params: []Param{need(eps), need(headDim), need(scale)},
	Forms:  []Form{{In: []Operand{headsOf}, Out: results("[B,heads,head_dim]"), Shape: normHeads}},
})

var DECAY = declare(Spec{
	Code:   39,
	Name:   "DECAY",
	Kernel: true,
	Doc: "exp(−exp(A) · softplus(a + bias)), where softplus(x) = log(1 + exp(x)): what remains of a state after a " +
		"step. A row of a has an element for each of those of A.",
	Forms: []Form{{
		In: []Operand{{Name: "a", Shape: "[B*,n]"}, {Name: "A", Shape: "[n]", Role: Gain},
			{Name: "bias", Shape: "[n]", Role: Gain}},
		Out:   results("[B,n]"),
		Shape: norm,
	}},
})

var RECURRENCE = declare(Spec{
	Code:   40,
	Name:   "RECURRENCE",
	Kernel: true,
	Doc: "The steps of a recurrent state S, a matrix, one for each row: S is multiplied by the row's decay, k ⊗ u is " +
		"added to it, and out is Sᵀq. u is beta · v, or with delta=1 beta · (v − Sᵀk), by the S that has decayed. " +
		"The state is kept for the next pass as it is before the rows, and pending has what they add: the position " +
		"after each, its decay, k and u, and zeros in its other rows. So the next pass may begin at any of these " +
		"positions: it first takes those rows of pending that are before its own. At position 0 the state is zeros. " +
		"The rows are at positions that follow one another, from pos on. A pass may not begin at a position that " +
		"neither the state nor a row of pending is of; one whose pending has zeros alone is of any.",
	Params: []Param{need(ownPos),
		{Key: "delta", Lo: 0, Hi: 1, Doc: "1: what the state has for k is replaced, and not added to"}},
	Forms: []Form{{
		In: []Operand{
			{Name: "q", Shape: "[B,m]"}, {Name: "k", Shape: "[B,m]"}, {Name: "v", Shape: "[B,n]"},
			{Name: "decay", Shape: "[B]"}, {Name: "beta", Shape: "[B]"},
			{Name: "state", Shape: "[m,n]", Role: Kept}, {Name: "pending", Shape: "[R,2+m+n]", Role: Kept},
		},
		Out: []Operand{{Name: "out", Shape: "[B,n]"}, {Name: "state", Shape: " as it is read", Role: Kept},
			{Name: "pending", Shape: " as it is read", Role: Kept}},
		Shape: recurrenceShape,
	}},
})

// recurrenceShape: rows of all operands are as many, at most as many as pending has, and fit the state.
func recurrenceShape(c *Call) (n, last int) {
	q, v, state, pending := &c.In[0], &c.In[2], &c.In[5], &c.In[6]
	m := q.Last
	last = v.Last
	switch {
	case m == 0 || last == 0 || q.Rows == 0:
		c.Fail("has %d rows of q of %d elements, and of v of %d, want at least one of each", q.Rows, m, last)
	case c.In[1].Rows != q.Rows || c.In[1].Last != m || v.Rows != q.Rows:
		c.Fail("has %d rows of q, %d of k and %d of v, the first of %d elements and the second of %d; want as many",
			q.Rows, c.In[1].Rows, v.Rows, m, c.In[1].Last)
	case c.In[3].N() != q.Rows || c.In[4].N() != q.Rows:
		c.Fail("has %d rows, %d numbers of decay and %d of beta; want as many", q.Rows, c.In[3].N(), c.In[4].N())
	case state.Temp || state.N() != c.product(m, last) || state.Last != last:
		c.Fail("has a state of %d rows of %d elements, want %d of %d in memory", state.Rows, state.Last, m, last)
	case pending.Temp || pending.Last != 2+m+last || pending.Rows < q.Rows:
		c.Fail("has %d pending rows of %d elements, want at least %d of %d in memory", pending.Rows, pending.Last,
			q.Rows, 2+m+last)
	}
	return v.N(), last
}
