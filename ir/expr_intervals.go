package ir

import (
	"slices"
	"sort"
)

// An Interval is an interval of positions, both ends included.
type Interval struct{ From, To int }

// AffineIntervals divides the positions from lo to hi into intervals, in order, on each of which every expression is
// affine. So a linear condition that holds at both ends of an interval holds in between, and max(0,pos-15) can be
// judged by the few positions at which it bends. The positions are those of the sequence that the expressions mention.
// AffineIntervals reports false for remainders and quotients of pos, for other symbols, and for values so large that
// Eval would saturate.
func AffineIntervals(lo, hi int, exprs ...Expr) ([]Interval, bool) {
	var bends []int
	for i := range exprs {
		if exprs[i].magnitude(max(abs(lo), abs(hi))) > satMax/4 {
			return nil, false
		}
		more, ok := exprs[i].bends(lo, hi)
		if !ok {
			return nil, false
		}
		bends = append(bends, more...)
	}
	return cutAt(lo, hi, bends), true
}

// cutAt cuts an interval before some positions in it.
func cutAt(lo, hi int, at []int) []Interval {
	var out []Interval
	for _, pos := range slices.Compact(slices.Sorted(slices.Values(at))) {
		out = append(out, Interval{lo, pos - 1})
		lo = pos
	}
	return append(out, Interval{lo, hi})
}

// bends returns positions after lo, up to hi, before which the interval is to be cut for e to be affine on each part.
func (e Expr) bends(lo, hi int) ([]int, bool) {
	switch e.op {
	case exprConst:
		return nil, true
	case exprSym:
		return nil, Sym(e.k) == Pos
	case exprPosOf:
		return nil, e.x == nil
	case exprMul:
		return e.x.bends(lo, hi)
	case exprDiv, exprMod:
		return nil, false // the constructors fold those of constants
	}
	x, ok1 := e.x.bends(lo, hi)
	y, ok2 := e.y.bends(lo, hi)
	if !ok1 || !ok2 {
		return nil, false
	}
	out := append(x, y...)
	if e.op == exprMin || e.op == exprMax {
		for _, i := range cutAt(lo, hi, out) {
			if pos, ok := e.crossing(i); ok {
				out = append(out, pos)
			}
		}
	}
	return out, true
}

// crossing returns the first position in an interval at which the other one of the two sides of a min or max is larger
// than at its beginning. Both are affine there, so that they cross once at most.
func (e Expr) crossing(i Interval) (int, bool) {
	above := func(pos int) int { return e.x.At(pos) - e.y.At(pos) }
	before := above(i.From)
	crossed := func(pos int) bool { return before < 0 && above(pos) > 0 || before > 0 && above(pos) < 0 }
	if !crossed(i.To) {
		return 0, false
	}
	return i.From + sort.Search(i.To-i.From, func(n int) bool { return crossed(i.From + n) }), true
}

// magnitude bounds what e and its parts come to at positions of at most so much.
func (e Expr) magnitude(pos int) int {
	switch {
	case e.op == exprConst:
		return abs(clampInt(e.k))
	case e.op == exprSym || e.op == exprPosOf:
		return pos
	case e.op == exprMul:
		return satMul(e.x.magnitude(pos), abs(clampInt(e.k)))
	case e.y == nil:
		return e.x.magnitude(pos)
	}
	return satAdd(e.x.magnitude(pos), e.y.magnitude(pos))
}
