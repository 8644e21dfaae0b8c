package kernel

import (
	"amkc/ir"
	"amkc/validate/views"
)

// The geometry of runahead.go: views of one buffer, which may be a cache whose rows are copied in whole blocks.

// roundOut rounds the rows of a view out to whole blocks, wherever it begins and ends. Blocks of 1 are no rounding.
func roundOut(view []views.Range, b *ir.Buffer, blocks int) []views.Range {
	if blocks == 1 {
		return view
	}
	r, rows := &view[views.RowsDim(b)], b.Shape[views.RowsDim(b)]
	r.Lo, r.Hi = views.Between(0, 0), views.Between(rows, rows)
	if r.Shared() && r.Block%blocks != 0 {
		r.Parts = 0 // a block then holds rows of several parts
	}
	return view
}

// meet looks for a position at which a streamed view, its rows rounded out to whole blocks, shares an element with
// another.
func (p *contract) meet(r, w *streamedView, rows, blocks int) (int, bool) {
	for pos := p.flat.Lo; pos <= p.flat.Hi; pos++ {
		if !p.SpendEvals(1, r.task) {
			return 0, false // refused by the budget
		}
		if p.meetAt(r, w, rows, blocks, pos) {
			return pos, true
		}
	}
	return 0, false
}

func (p *contract) meetAt(r, w *streamedView, rows, blocks, pos int) bool {
	for d := range r.dims {
		a, b := r.dims[d], &w.dims[d]
		lo, hi := a.Lo.At(pos), a.Hi.At(pos)
		if lo >= hi {
			return false // nothing is copied
		}
		if d == rows && blocks > 1 {
			lo, hi = lo/blocks*blocks, (hi+blocks-1)/blocks*blocks
			if a.Shared() && a.Block%blocks != 0 {
				a.Parts = 0
			}
		}
		lo, hi = max(lo, b.Lo.At(pos)), min(hi, b.Hi.At(pos))
		for lo < hi && !(views.Holds(&a, lo, pos) && views.Holds(b, lo, pos)) {
			if !p.SpendEvals(1, r.task) {
				return false
			}
			lo++
		}
		if lo >= hi {
			return false
		}
	}
	return true
}

// groupBy numbers views so that those with different numbers share no element: by components of overlap in each
// dimension but the rows (rows is below 0 where there are none), and by part where all rows are dealt out alike, in
// whole blocks.
func groupBy(c *traffic, rows, blocks int) func(v *streamedView) views.Key {
	var starts [4][]int // of the pieces of a dimension; nil where some view depends on pos
	for d := range c.reads[0].dims {
		if d != rows {
			starts[d] = c.pieces(d)
		}
	}
	dealt := rows >= 0 && dealtAlike(c, rows, blocks)
	return func(v *streamedView) (k views.Key) {
		for d := range v.dims {
			if starts[d] != nil {
				s, _ := views.Ends(&v.dims[d])
				k[d] = views.PieceOf(s, starts[d])
			}
		}
		if dealt {
			part, _ := v.dims[rows].Part.IsConst()
			k[rows] = int32(part)
		}
		return k
	}
}

// pieces returns where the connected pieces of a dimension begin that the views cover, or nil if some view depends on
// pos there.
func (c *traffic) pieces(d int) []int {
	spans := make([]views.Interval, 0, len(c.reads)+len(c.writes))
	for _, list := range [][]streamedView{c.reads, c.writes} {
		for i := range list {
			s, ok := views.Ends(&list[i].dims[d])
			if !ok {
				return nil
			}
			spans = append(spans, s)
		}
	}
	return views.Pieces(spans)
}

// dealtAlike reports whether every view has one part of the rows, dealt out in the same whole blocks.
func dealtAlike(c *traffic, rows, blocks int) bool {
	first := &c.reads[0].dims[rows]
	for _, list := range [][]streamedView{c.reads, c.writes} {
		for i := range list {
			r := &list[i].dims[rows]
			if _, ok := r.Part.IsConst(); !ok || !r.Shared() || r.Block%blocks != 0 || r.Block != first.Block ||
				r.Parts != first.Parts {
				return false
			}
		}
	}
	return true
}
