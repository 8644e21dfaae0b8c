package simulate

import (
	"slices"

	"amkc/ir"
)

// An index is what an element may hold.
type index struct {
	hi    int  // the largest row
	any   bool // or anything at all
	none  bool // or the mark of an argmax that has found nothing
	given bool // or what the host gives
}

func (i index) or(o index) index {
	return index{max(i.hi, o.hi), i.any || o.any, i.none || o.none, i.given || o.given}
}

// list is what the elements of an operand may hold: each its own, or all the same.
type list struct {
	n    int
	same index
	each []index // nil: all are the same
}

func all(same index, n int) list { return list{n: n, same: same} }

func (l list) at(i int) index {
	if l.each == nil {
		return l.same
	}
	return l.each[i]
}

// kinds returns what the elements may hold, each kind once or more often.
func (l list) kinds() []index {
	if l.each == nil && l.n > 0 {
		return []index{l.same}
	}
	return l.each
}

// oneOf returns what one of each n elements side by side may hold, whichever it is.
func (l list) oneOf(n int) list {
	if n <= 0 {
		return list{}
	}
	if l.each == nil {
		return all(l.same, l.n/n)
	}
	out := list{n: l.n / n, each: make([]index, l.n/n)}
	for b := range out.each {
		out.each[b] = index{hi: -1}
		for _, of := range l.each[b*n : (b+1)*n] {
			out.each[b] = out.each[b].or(of)
		}
	}
	return out
}

func elements(o *ir.Operand, r Run) int {
	n, pos := 1, r.of(o.Dims)
	for d := range o.Dims {
		n *= o.Dims[d].Len(pos)
	}
	return n
}

// lastOf is the number of elements of the last dimension of a view.
func lastOf(o *ir.Operand, r Run) int { return o.Dims[len(o.Dims)-1].Len(r.of(o.Dims)) }

// empty reports whether a view has no elements.
func empty(dims []ir.Range, pos int) bool {
	return slices.ContainsFunc(dims, func(r ir.Range) bool { return r.Len(pos) <= 0 })
}

// elementsOf lists the elements of a view in row-major order.
func elementsOf(b *ir.Buffer, dims []ir.Range, pos int) []int {
	if empty(dims, pos) { // or the other dimensions would be listed, however large they are
		return nil
	}
	out := []int{0}
	for d := range dims {
		var next []int
		for _, e := range out {
			for _, k := range dims[d].Elements(nil, pos) {
				next = append(next, e*b.Shape[d]+k)
			}
		}
		out = next
	}
	return out
}
