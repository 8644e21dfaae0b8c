package refvm

import (
	"fmt"

	"amkc/ir"
)

// checkLengths says which view of an op has another length at some positions than at others; "" if none has. Two may:
// the rows of a cache that an op looks at, and the view that KV_APPEND writes, where rows are those of another task: a
// share of as many at each position, or a row or none.
func (vm *VM) checkLengths(o *op) string {
	for i := range o.in {
		free := -1
		if looksAtRows(o.src.Code, i) {
			free = rowsDim(o.in[i].view)
		}
		if d, at := vm.changes(&o.in[i], free, false); d >= 0 {
			return fmt.Sprintf("has another length of dimension %d of input %d at position %d than before, or "+
				"cannot be followed that far", d, i+1, at)
		}
	}
	for i := range o.out {
		if d, at := vm.changes(&o.out[i], -1, o.src.Code == ir.KVAppend); d >= 0 {
			return fmt.Sprintf("has another length of dimension %d of output %d at position %d than before, or "+
				"cannot be followed that far", d, i+1, at)
		}
	}
	return ""
}

// looksAtRows reports whether input i of an op is rows of a cache.
func looksAtRows(code ir.Opcode, i int) bool {
	return i == 1 && (code == ir.ATTENTION || code == ir.ShortConv) || i == 2 && code == ir.ATTENTION
}

// rowsDim is the dimension of a cache that counts positions: [rows, hd], [rows, heads, hd] or [x, rows, y, hd].
func rowsDim(view []ir.Range) int { return max(0, len(view)-3) }

// maxTried bounds the positions that are tried for views of which the bounds are not affine in pos.
const maxTried = 1 << 18

// changes returns a dimension of a view, other than free, whose length is not the same at every position, and a
// position where it differs; -1 if there is none. With optional it may also be one element or none.
func (vm *VM) changes(o *operand, free int, optional bool) (dim, pos int) {
	if !o.moving {
		return -1, 0
	}
	for d := range o.view {
		r := &o.view[d]
		if n, ok := slides(r); d == free || ok && (!r.Shared() || n <= 0 || optional && n == 1) {
			continue
		}
		if optional && r.Shared() { // of which x has all elements
			r = &ir.Range{Lo: r.Lo, Hi: r.Hi}
		}
		first := r.Len(vm.flat.Lo)
		for pos := vm.flat.Lo + 1; pos <= vm.flat.Hi; pos++ {
			if vm.tried++; vm.tried > maxTried {
				return d, pos
			}
			if n := r.Len(pos); n != first && !(optional && n <= 1 && first <= 1) {
				return d, pos
			}
		}
	}
	return -1, 0
}

// slides reports whether both ends of a range move alike, and how far apart they are.
func slides(r *ir.Range) (n int, ok bool) {
	a, lo, ok1 := r.Lo.Affine()
	b, hi, ok2 := r.Hi.Affine()
	return hi - lo, ok1 && ok2 && a == b
}

// checkShare says how the rows that an op looks at contradict its parameters, which decide whose the step's own row
// is; "" if they do not.
func checkShare(o *op) string {
	if len(o.in) < 2 || !looksAtRows(o.src.Code, 1) || o.in[1].st == nil {
		return ""
	}
	r := &o.in[1].view[rowsDim(o.in[1].view)]
	parts, block, part := o.src.IntAt("parts", 0, 1), o.src.IntAt("block", 0, 1), o.src.IntAt("part", 0, 0)
	if !r.Shared() {
		if parts == 1 {
			return ""
		}
		return fmt.Sprintf("takes all rows, and the parameters say part %d of %d", part, parts)
	}
	if n, constant := r.Part.IsConst(); !constant || n != part || r.Parts != parts || r.Block != block {
		return fmt.Sprintf("takes part %s of %d in blocks of %d, and the parameters say part %d of %d in blocks of %d",
			r.Part, r.Parts, r.Block, part, parts, block)
	}
	return ""
}
