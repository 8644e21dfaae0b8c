package loops

import (
	"cmp"
	"slices"

	"amkc/ir"
)

// A box is a view whose bounds are numbers: in each dimension a first element and one past the last.
type box [4][2]int

// mostBoxes is how many boxes views may come to that are compared in pairs: more than one only where they are odd.
const mostBoxes = 1 << 10

// covers reports whether the elements that a call writes at some places of the body include all that it reads at
// others. It may say no where that is so: views that depend on the position are not looked into, nor those that make
// too many boxes.
func (r *run) covers(writes, reads []operandPlace) bool {
	written, ok := r.boxes(writes)
	if !ok {
		return false
	}
	read, ok := r.boxes(reads)
	if !ok {
		return false
	}
	if written = merge(written); len(written) > mostBoxes {
		return false
	}
	for _, b := range read {
		if !slices.ContainsFunc(written, b.within) {
			return false
		}
	}
	return true
}

// boxes returns the views of all tasks at some places, without those that repeat. Spans are the same in every call.
func (r *run) boxes(pls []operandPlace) (out []box, ok bool) {
	seen := map[box]bool{}
	for _, pl := range pls {
		st := r.body()[pl.stage]
		for _, t := range st.Dist.Tasks(0) {
			b, fixed := boxOf(pl.in(r.body()), t)
			if !fixed {
				return nil, false
			}
			if !seen[b] {
				seen[b] = true
				out = append(out, b)
			}
		}
	}
	return out, true
}

func boxOf(o *ir.Operand, t ir.TaskSpan) (b box, fixed bool) {
	for d := range b {
		b[d] = [2]int{0, 1}
	}
	for d, rng := range o.Dims {
		rng = rng.Bind(t)
		lo, ok1 := rng.Lo.IsConst()
		hi, ok2 := rng.Hi.IsConst()
		if !ok1 || !ok2 || rng.Shared() {
			return b, false
		}
		b[d] = [2]int{lo, hi}
	}
	return b, true
}

// within reports whether b is in c. An empty box is in any.
func (b box) within(c box) bool {
	inside := true
	for d := range b {
		if b[d][0] >= b[d][1] {
			return true
		}
		inside = inside && c[d][0] <= b[d][0] && b[d][1] <= c[d][1]
	}
	return inside
}

// merge joins boxes that are side by side, dimension after dimension from the last. What tasks write are slices of
// one box.
func merge(boxes []box) []box {
	for d := len(box{}) - 1; d >= 0; d-- {
		slices.SortFunc(boxes, func(a, b box) int {
			for e := range a {
				if e != d && a[e] != b[e] {
					return slices.Compare(a[e][:], b[e][:])
				}
			}
			return cmp.Compare(a[d][0], b[d][0])
		})
		var out []box
		for _, b := range boxes {
			if n := len(out); n > 0 {
				last := out[n-1]
				last[d] = b[d]
				if last == b && b[d][0] <= out[n-1][d][1] {
					out[n-1][d][1] = max(out[n-1][d][1], b[d][1])
					continue
				}
			}
			out = append(out, b)
		}
		boxes = out
	}
	return boxes
}
