// Package views compares views of one buffer for all positions at once: whether two share an element, and whether one
// lies inside the other. There may be many pairs to compare, so each view is brought into a form first that takes a
// few steps to compare, however long its expressions are.
//
// It knows ranges and nothing of programs: it imports the standard library and amkc/ir, and must not import any other
// package of amkc.
package views

import (
	"slices"

	"amkc/ir"
)

// Positions is the interval of positions, both ends included, for which views are compared. Each sequence may have any
// of them, independently of the others.
type Positions struct {
	Lo, Hi int
	terms  map[string]int32 // expressions that are not affine, numbered from 1
}

// Bound is an expression of the position of one sequence on an interval of positions. An affine one is represented by
// its values at both ends: a relation between two affine bounds of one sequence that holds at both ends holds in
// between. Any other is represented by a number that only equal expressions share.
type Bound struct {
	lo, hi   int
	term     int32 // 0: affine
	sequence int32 // 0 where lo is hi
}

// Range is one dimension of a view; shares are distributed in parts of blocks.
type Range struct {
	Lo, Hi, Part Bound
	Block, Parts int
}

// Between is the bound that is lo at the first position of a sequence and hi at the last, and affine.
func Between(lo, hi, sequence int) Bound {
	if lo == hi {
		sequence = 0
	}
	return Bound{lo: lo, hi: hi, sequence: int32(sequence)}
}

// Bound returns the bound that an expression is.
func (p *Positions) Bound(e ir.Expr) Bound {
	if n, ok := e.IsConst(); ok {
		return Bound{lo: n, hi: n}
	}
	if _, _, ok := e.Affine(); ok {
		s, _ := e.Sequence()
		return Between(e.At(p.Lo), e.At(p.Hi), max(0, s))
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
	return Bound{term: n}
}

// Append appends the dimensions of a view.
func (p *Positions) Append(dst []Range, dims []ir.Range) []Range {
	for d := range dims {
		r := &dims[d]
		f := Range{Lo: p.Bound(r.Lo), Hi: p.Bound(r.Hi)}
		if r.Shared() {
			f.Part, f.Block, f.Parts = p.Bound(r.Part), r.Block, r.Parts
		}
		dst = append(dst, f)
	}
	return dst
}

// AtMost reports whether e <= f at every position, if both are affine (or the same).
func (p *Positions) AtMost(e, f ir.Expr) bool { return p.Bound(e).AtMost(p.Bound(f)) }

// AtMost reports whether x <= y at every position, if both are affine (or the same). Of two sequences, one may be at
// its last position when the other is at its first.
func (x Bound) AtMost(y Bound) bool {
	switch {
	case x.term != 0 || y.term != 0:
		return x.term == y.term
	case x.sequence != y.sequence:
		return max(x.lo, x.hi) <= min(y.lo, y.hi)
	}
	return x.lo <= y.lo && x.hi <= y.hi
}

// value returns the only value of a bound, if it has one.
func (x Bound) value() (int, bool) { return x.lo, x.term == 0 && x.lo == x.hi }

// Ends returns the interval of the range if it does not depend on a position, and an empty one if it does.
func (r *Range) Ends() (lo, hi int) {
	lo, ok1 := r.Lo.value()
	hi, ok2 := r.Hi.value()
	if !ok1 || !ok2 {
		return 0, 0
	}
	return lo, hi
}

// Shared reports whether the range is one part of several.
func (r *Range) Shared() bool { return r.Parts > 1 }

// dealtAs reports whether two shares are of elements that are distributed alike.
func (r *Range) dealtAs(s *Range) bool {
	return r.Shared() && s.Shared() && r.Block == s.Block && r.Parts == s.Parts
}

// Disjoint reports whether two views of one buffer are disjoint in one dimension at every position.
func Disjoint(a, b []Range) bool {
	for d := range a {
		r, s := &a[d], &b[d]
		if r.Hi.AtMost(s.Lo) || s.Hi.AtMost(r.Lo) || r.Hi.AtMost(r.Lo) || s.Hi.AtMost(s.Lo) {
			return true
		}
		if r.dealtAs(s) {
			m, ok1 := r.Part.value()
			n, ok2 := s.Part.value()
			if ok1 && ok2 && m != n {
				return true
			}
		}
	}
	return false
}

// Inside reports whether view a lies inside view b at every position.
func Inside(a, b []Range) bool {
	for d := range a {
		r, s := &a[d], &b[d]
		if s.Shared() && !(r.dealtAs(s) && r.Part == s.Part) || !s.Lo.AtMost(r.Lo) || !r.Hi.AtMost(s.Hi) {
			return false
		}
	}
	return true
}

// Empty reports whether a view is empty at every position.
func Empty(dims []Range) bool {
	for d := range dims {
		if dims[d].Hi.AtMost(dims[d].Lo) {
			return true
		}
	}
	return false
}

// Same reports whether two views have the same text.
func Same(a, b []ir.Range) bool {
	return slices.EqualFunc(a, b, func(r, s ir.Range) bool { return SameRange(&r, &s) })
}

// SameRange reports whether two ranges have the same text.
func SameRange(a, b *ir.Range) bool {
	if !a.Lo.Equal(b.Lo) || !a.Hi.Equal(b.Hi) || a.Shared() != b.Shared() {
		return false
	}
	return !a.Shared() || a.Block == b.Block && a.Parts == b.Parts && a.Part.Equal(b.Part)
}

// Constant reports whether a range is the same at every position.
func Constant(r *ir.Range) bool {
	_, ok1 := r.Lo.IsConst()
	_, ok2 := r.Hi.IsConst()
	if !ok1 || !ok2 {
		return false
	}
	_, ok3 := r.Part.IsConst()
	return ok3 || !r.Shared()
}

// Holds reports whether an element between the ends of a range belongs to its part.
func Holds(r *ir.Range, e, pos int) bool {
	return !r.Shared() || (e/r.Block)%r.Parts == r.Part.At(pos)
}

// RowsDim is the dimension of a KV cache that counts positions: [rows, heads, head_dim], or with one or two leading
// dimensions. It is below 0 for a buffer of less than three dimensions.
func RowsDim(b *ir.Buffer) int { return len(b.Shape) - 3 }

// String prints the ranges of a view as they stand after the name of its buffer.
func String(dims []ir.Range) string {
	o := ir.Operand{Buf: "x", Dims: dims}
	return o.String()[1:]
}
