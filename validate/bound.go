package validate

import "amkc/ir"

// Views that depend on pos are compared in pairs, of which there may be many, so that each view is brought into a
// form first that is compared in a few steps, however long its expressions are.

// A bound is an expression of pos on the interval of positions. An affine one is its values at both ends: what is so
// between two of them at both ends is so in between. Any other is a number that it has in common with equal
// expressions alone.
type bound struct {
	lo, hi int
	term   int32 // 0: affine
}

// form is a range of a view; shares are dealt out in parts of blocks.
type form struct {
	lo, hi, part bound
	block, parts int
}

func (p *proof) bound(e ir.Expr) bound {
	if n, ok := e.IsConst(); ok {
		return bound{lo: n, hi: n}
	}
	if _, _, ok := e.Affine(); ok {
		return bound{lo: e.At(p.flat.Lo), hi: e.At(p.flat.Hi)}
	}
	if p.terms == nil {
		p.terms = map[string]int32{}
	}
	text := e.String()
	n, ok := p.terms[text]
	if !ok {
		n = int32(len(p.terms)) + 1
		p.terms[text] = n
	}
	return bound{term: n}
}

// form appends the form of a view.
func (p *proof) form(dst []form, dims []ir.Range) []form {
	for d := range dims {
		r := &dims[d]
		f := form{lo: p.bound(r.Lo), hi: p.bound(r.Hi)}
		if r.Shared() {
			f.part, f.block, f.parts = p.bound(r.Part), r.Block, r.Parts
		}
		dst = append(dst, f)
	}
	return dst
}

// atMost reports whether x <= y at every position, if both are affine (or the same).
func (x bound) atMost(y bound) bool {
	if x.term != 0 || y.term != 0 {
		return x.term == y.term
	}
	return x.lo <= y.lo && x.hi <= y.hi
}

// value returns the only value of a bound, if it has one.
func (x bound) value() (int, bool) { return x.lo, x.term == 0 && x.lo == x.hi }

func (r *form) shared() bool { return r.parts > 1 }

// dealtAs reports whether two shares are of elements that are dealt out alike.
func (r *form) dealtAs(s *form) bool {
	return r.shared() && s.shared() && r.block == s.block && r.parts == s.parts
}

// disjoint reports whether two views of one buffer are apart in one dimension at every position.
func disjoint(a, b []form) bool {
	for d := range a {
		r, s := &a[d], &b[d]
		if r.hi.atMost(s.lo) || s.hi.atMost(r.lo) || r.hi.atMost(r.lo) || s.hi.atMost(s.lo) {
			return true
		}
		if r.dealtAs(s) {
			m, ok1 := r.part.value()
			n, ok2 := s.part.value()
			if ok1 && ok2 && m != n {
				return true
			}
		}
	}
	return false
}

// inside reports whether view a lies inside view b at every position.
func inside(a, b []form) bool {
	for d := range a {
		r, s := &a[d], &b[d]
		if s.shared() && !(r.dealtAs(s) && r.part == s.part) || !s.lo.atMost(r.lo) || !r.hi.atMost(s.hi) {
			return false
		}
	}
	return true
}

// empty reports whether a view is empty at every position.
func empty(dims []form) bool {
	for d := range dims {
		if dims[d].hi.atMost(dims[d].lo) {
			return true
		}
	}
	return false
}

// atMost reports whether e <= f at every position, if both are affine (or the same).
func (p *proof) atMost(e, f ir.Expr) bool { return p.bound(e).atMost(p.bound(f)) }
