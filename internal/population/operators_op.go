package population

import (
	"slices"

	"amkc/ir"
)

// The ops of a task, and their parameters.
var opOperators = []Operator{
	operator("drop-op", ruleProvenance, func(d *draft) bool {
		at, ok := d.findOp(func(*ir.Op) bool { return true })
		if ok {
			d.editOps(at.unit, func(n int) []int { return slices.Delete(sequence(n), at.op, at.op+1) })
		}
		return ok
	}),
	operator("repeat-op", ruleEdges, func(d *draft) bool {
		at, ok := d.findOp(func(*ir.Op) bool { return true })
		if ok {
			d.editOps(at.unit, func(n int) []int { return append(sequence(n), at.op) })
		}
		return ok
	}),
	operator("swap-ops", ruleEdges, func(d *draft) bool {
		u := d.find(d.units(), func(u int) bool { return d.ops(u) > 1 })
		if u < 0 {
			return false
		}
		k := d.r.IntN(d.ops(u) - 1)
		d.editOps(u, func(n int) []int {
			order := sequence(n)
			order[k], order[k+1] = order[k+1], order[k]
			return order
		})
		return true
	}),
	operator("opcode", ruleStructure, func(d *draft) bool {
		at, ok := d.findOp(func(*ir.Op) bool { return true })
		if ok {
			o := d.own(at)
			n := ir.Opcode(len(ir.Ops))
			o.Code = (o.Code + 1 + ir.Opcode(d.r.IntN(int(n)-1))) % n
		}
		return ok
	}),
	operator("fused", ruleStructure, func(d *draft) bool {
		at, ok := d.findOp(func(o *ir.Op) bool { return o.Code != ir.FUSED && len(o.Out) == 1 && len(o.In) > 0 })
		if ok {
			o := d.own(at)
			o.Code, o.Params = ir.FUSED, []ir.Param{ir.IntParam("recipe", ir.Int(d.r.IntN(8)))}
		}
		return ok
	}),
	operator("drop-operand", ruleStructure, func(d *draft) bool {
		at, ok := d.findOp(func(o *ir.Op) bool { return len(o.In) > 0 })
		if ok {
			o := d.own(at)
			last := len(o.In) - 1
			o.In = o.In[:last]
			if d.flat != nil {
				f := &d.flat.Tasks[at.unit].Ops[at.op]
				f.InBuf = f.InBuf[:last]
			}
		}
		return ok
	}),
	operator("drop-parameter", ruleStructure, func(d *draft) bool {
		return d.changeParams(func(o *ir.Op, k int) { o.Params = slices.Delete(o.Params, k, k+1) })
	}),
	operator("change-parameter", ruleMemory, func(d *draft) bool {
		return d.changeParams(func(o *ir.Op, k int) {
			if p := &o.Params[k]; p.IsFloat {
				p.Float = -p.Float
			} else {
				p.Int = p.Int.Add(ir.Int(1 - 2*d.r.IntN(2)))
			}
		})
	}),
	operator("parameter-type", ruleStructure, func(d *draft) bool {
		return d.changeParams(func(o *ir.Op, k int) {
			p := &o.Params[k]
			*p = ir.Param{Key: p.Key, Int: ir.Int(1), Float: 1.5, IsFloat: !p.IsFloat}
		})
	}),
	operator("unknown-parameter", ruleStructure, func(d *draft) bool {
		at, ok := d.findOp(func(*ir.Op) bool { return true })
		if ok {
			o := d.own(at)
			o.Params = append(o.Params, ir.IntParam("colour", ir.Int(1)))
		}
		return ok
	}),
	operator("read-before-write", ruleProvenance, func(d *draft) bool {
		at, ok := d.findOp(func(o *ir.Op) bool { return slices.ContainsFunc(o.Out, ir.Operand.IsTemp) })
		if ok {
			o := d.own(at)
			o.Out[slices.IndexFunc(o.Out, ir.Operand.IsTemp)].Buf = "%elsewhere"
		}
		return ok
	}),
}

// sequence is the order of n ops as they are.
func sequence(n int) []int {
	order := make([]int, n, n+1)
	for i := range order {
		order[i] = i
	}
	return order
}

// editOps replaces the ops of a unit by those that order lists, which is given their number.
func (d *draft) editOps(unit int, order func(n int) []int) {
	list := order(d.ops(unit))
	if d.flat != nil {
		d.flat.Tasks[unit].Ops = inOrder(d.flat.Tasks[unit].Ops, list)
	} else {
		d.stages[unit].Ops = inOrder(d.stages[unit].Ops, list)
	}
}

func inOrder[T any](ops []T, order []int) []T {
	out := make([]T, len(order))
	for i, k := range order {
		out[i] = ops[k]
	}
	return out
}

func (d *draft) changeParams(change func(o *ir.Op, k int)) bool {
	at, ok := d.findOp(func(o *ir.Op) bool { return len(o.Params) > 0 })
	if ok {
		o := d.own(at)
		change(o, d.r.IntN(len(o.Params)))
	}
	return ok
}
