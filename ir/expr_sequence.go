package ir

// Positions of sequences in expressions. What mentions the position of one sequence alone can be evaluated at one.

// PosOf returns the position of the first row of a sequence: pos for sequence 0.
func PosOf(sequence Expr) Expr {
	n, ok := sequence.IsConst()
	switch {
	case !ok:
		return Expr{op: exprPosOf, x: &sequence}
	case n == 0:
		return Symbol(Pos)
	}
	return Expr{op: exprPosOf, k: n}
}

// Sequence returns the sequence whose position e mentions, -1 if it mentions none. It reports false if e mentions
// several sequences, a negative one, or one that depends on the task or the row.
func (e Expr) Sequence() (int, bool) {
	switch {
	case e.op == exprPosOf:
		return e.k, e.x == nil && e.k >= 0
	case e.op == exprSym && Sym(e.k) == Pos:
		return 0, true
	case e.x == nil:
		return -1, true
	}
	s, ok := e.x.Sequence()
	if e.y != nil && ok {
		var other int
		if other, ok = e.y.Sequence(); s < 0 {
			s = other
		}
		ok = ok && (other < 0 || other == s)
	}
	return s, ok
}

// within reports whether every sequence that e names by number is one of n.
func (e Expr) within(n int) bool {
	if e.op == exprPosOf && e.x == nil {
		return e.k >= 0 && e.k < n
	}
	return (e.x == nil || e.x.within(n)) && (e.y == nil || e.y.within(n))
}

// Sequence returns the sequence whose position a view mentions, as Expr.Sequence does.
func Sequence(dims []Range) (int, bool) {
	s := -1
	for d := range dims {
		r := &dims[d]
		for _, e := range []*Expr{&r.Lo, &r.Hi, &r.Part} {
			other, ok := e.Sequence()
			if !ok || other >= 0 && s >= 0 && other != s {
				return 0, false
			}
			s = max(s, other)
		}
	}
	return s, true
}
