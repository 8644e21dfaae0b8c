package validate

import (
	"slices"

	"amkc/ir"
)

// expander turns views into runs. It keeps its buffers between calls.
type expander struct {
	cur, next []run
	dropped   int // runs that were not made because there are too many of them
}

// expand returns the runs of a view at a position, in ascending order, valid until the next call. Addresses are bytes
// of one copy if bytes is set (the layout is linear then), else row-major element numbers.
func (x *expander) expand(b *ir.Buffer, dims []ir.Range, pos int, bytes bool) []run {
	x.dropped = 0
	cur := append(x.cur[:0], run{0, 1})
	inner := 1
	for d := len(dims) - 1; d >= 0; d-- {
		whole := len(cur) == 1 && cur[0] == run{0, inner} // the inner dimensions are covered: runs join up
		next := x.next[:0]
		r := &dims[d]
		lo, hi := r.Lo.At(pos), r.Hi.At(pos)
		for lo < hi {
			end := hi
			if r.Shared() {
				if lo, end = share(r, lo, hi, pos); lo >= hi {
					break
				}
			}
			if whole {
				next = append(next, run{lo * inner, end * inner})
			} else {
				next = slices.Grow(next, min(maxRuns, (end-lo)*len(cur)))
				for e := lo; e < end && x.room(next); e++ {
					for _, c := range cur {
						next = append(next, run{c.lo + e*inner, c.hi + e*inner})
					}
				}
			}
			if !x.room(next) {
				return nil
			}
			lo = end
		}
		inner *= b.Shape[d]
		x.cur, x.next = next, cur
		if cur = next; len(cur) == 0 {
			return nil
		}
	}
	if bytes {
		size := unit(b)
		for i := range cur {
			cur[i].lo, cur[i].hi = cur[i].lo*size, cur[i].hi*size
		}
	}
	return cur
}

// room: a view of more runs than the whole budget is not expanded further.
func (x *expander) room(runs []run) bool {
	if len(runs) > maxRuns {
		x.dropped = len(runs)
		return false
	}
	return true
}

// share returns the first piece of [lo, hi) that belongs to the part of r.
func share(r *ir.Range, lo, hi, pos int) (int, int) {
	part := r.Part.At(pos)
	block := lo / r.Block
	skip := (part - block%r.Parts + r.Parts) % r.Parts
	if skip > 0 {
		block += skip
		lo = block * r.Block
	}
	return lo, min(hi, (block+1)*r.Block)
}

// unit is the number of bytes of one element in a linear layout.
func unit(b *ir.Buffer) int {
	switch b.Layout.Kind {
	case ir.Word32:
		return 4
	case ir.Word64:
		return 8
	default:
		return b.DType.Bits() / 8
	}
}
