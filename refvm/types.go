package refvm

import (
	"fmt"

	"amkc/ir"
)

// The VM could convert any element to any other. A device takes the bits of an operand for what its opcode says they
// are, so an op is refused unless its operands have those types.

// checkTypes says which operand of an op has elements that its opcode does not take; "" if none has. A temporary
// holds F32 or I32.
func checkTypes(op *ir.Op, in, out []ir.DType) string {
	for i, d := range in {
		if want := wantType(op, i); !want.takes(d) {
			return fmt.Sprintf("has %s elements in input %d, want %s", d, i+1, want)
		}
	}
	for i, d := range out {
		ints := yieldsInts(op, i, in)
		if ints != (d == ir.I32) || op.Code != ir.COPY && !ints && !floating.takes(d) {
			return fmt.Sprintf("writes %s elements to output %d, want I32 for indices and floats for all else", d, i+1)
		}
	}
	return ""
}

// wanted is what an input may hold: one type, any float, or anything.
type wanted struct {
	any, floats bool
	only        ir.DType
}

var floating, anything, index = wanted{floats: true}, wanted{any: true}, wanted{only: ir.I32}

func (w wanted) takes(d ir.DType) bool {
	switch {
	case w.any:
		return true
	case w.floats:
		return d == ir.F32 || d == ir.F16 || d == ir.BF16
	}
	return d == w.only
}

func (w wanted) String() string {
	switch {
	case w.any:
		return "any"
	case w.floats:
		return "F32, F16 or BF16"
	}
	return w.only.String()
}

// wantType returns what input i of an op may hold: indices are I32; a quantised matrix is what qdtype says, its zeros
// may be anything; COPY takes all.
func wantType(op *ir.Op, i int) wanted {
	matrix := 1 // of a quantised product; its scales and zeros follow
	switch op.Code {
	case ir.COPY:
		return anything
	case ir.EMBED:
		if i == 0 {
			return index
		}
	case ir.ROPE:
		if i == 1 && op.IntAt("order", 0, 0) == 0 {
			return index
		}
	case ir.ArgMax, ir.SAMPLE:
		if i > 0 {
			return index
		}
	case ir.SELECTED:
		if i == 2 {
			return index
		}
	case ir.STOP:
		return index
	case ir.DEQUANT:
		matrix = 0
	}
	if op.Has("qdtype") {
		switch i {
		case matrix:
			return wanted{only: ir.DType(op.IntAt("qdtype", 0, 0))}
		case matrix + 2:
			return anything
		}
	}
	return floating
}

// yieldsInts reports whether output i of an op gets I32 elements.
func yieldsInts(op *ir.Op, i int, in []ir.DType) bool {
	switch op.Code {
	case ir.ArgMax, ir.SAMPLE:
		return i == 1 || op.IntAt("partial", 0, 0) == 0
	case ir.TOPK:
		return i == 1
	case ir.COPY:
		return in[0] == ir.I32
	case ir.STOP:
		return true
	}
	return false
}
