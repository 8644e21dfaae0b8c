package views

import (
	"cmp"
	"slices"

	"amkc/ir"
)

// Key numbers a view by the groups that it falls into, one number for each dimension: views of one buffer with
// different keys share no element at any position. Zero stands for a dimension that does not distinguish views.
type Key [ir.MaxRank]int32

// Interval is [Lo, Hi).
type Interval struct{ Lo, Hi int }

// Ends returns the ends of a range, if they do not depend on pos.
func Ends(r *ir.Range) (Interval, bool) {
	lo, ok1 := r.Lo.IsConst()
	hi, ok2 := r.Hi.IsConst()
	return Interval{lo, max(lo, hi)}, ok1 && ok2
}

// Pieces returns where the connected pieces begin that intervals cover, in ascending order. It changes the list.
func Pieces(spans []Interval) []int {
	slices.SortFunc(spans, func(a, b Interval) int {
		return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi))
	})
	starts, end := []int{spans[0].Lo}, spans[0].Hi
	for _, s := range spans[1:] {
		if s.Lo >= end && s.Lo > starts[len(starts)-1] {
			starts = append(starts, s.Lo)
		}
		end = max(end, s.Hi)
	}
	return starts
}

// PieceOf returns the number of the piece that an interval is in, counted from 1.
func PieceOf(s Interval, starts []int) int32 {
	k, _ := slices.BinarySearch(starts, s.Lo+1)
	return int32(k)
}
