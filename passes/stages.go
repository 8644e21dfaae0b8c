package passes

import (
	"slices"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// What a stage is to a pass is seen from what it does, whatever it is called.

func lastOp(st *ir.Stage) *ir.Op { return &st.Ops[len(st.Ops)-1] }

func has(st *ir.Stage, codes ...ir.Opcode) bool {
	return slices.ContainsFunc(st.Ops, func(o ir.Op) bool { return slices.Contains(codes, o.Code) })
}

// attends reports whether a stage is attention, or combines what it leaves.
func attends(st *ir.Stage) bool { return has(st, ir.ATTENTION, ir.AttentionCombine) }

// findsBest reports whether a stage finds the largest logit of some rows.
func findsBest(st *ir.Stage) bool {
	last := lastOp(st)
	return last.Code == ir.SAMPLE && last.IntAt("partial", 0, 0) != 0
}

// names reports whether one of the operands is of a buffer.
func names(ops []ir.Operand, buf string) bool {
	return slices.ContainsFunc(ops, func(o ir.Operand) bool { return o.Buf == buf && !o.IsTemp() })
}

// keepers finds the stages that keep a value on the SMs that own its rows: those that write a buffer that some stage
// updates in place. Of a decoder that is the residual, and embed, o and down keep it.
type keepers struct {
	buffers rewrite.Buffers
	inPlace map[string]bool // buffers, by their declared names
}

func keepersOf(b rewrite.Buffers) keepers {
	k := keepers{b, map[string]bool{}}
	for i := range b.Program.Variants {
		rewrite.EachStage(&b.Program.Variants[i], func(st *ir.Stage, loop *ir.Loop) {
			for _, op := range st.Ops {
				for _, o := range op.In {
					if buf := b.Find(o.Buf, ir.FirstIndex(st, loop)); buf != nil && buf.Kind == ir.Activation &&
						names(op.Out, o.Buf) {
						k.inPlace[buf.Name] = true
					}
				}
			}
		})
	}
	return k
}

// keeps reports whether a stage of a loop, or of none, is one of them.
func (k keepers) keeps(st *ir.Stage, loop *ir.Loop) bool {
	return slices.ContainsFunc(st.Ops, func(op ir.Op) bool {
		return slices.ContainsFunc(op.Out, func(o ir.Operand) bool {
			buf := k.buffers.Find(o.Buf, ir.FirstIndex(st, loop))
			return buf != nil && k.inPlace[buf.Name]
		})
	})
}

// movable reports whether the rotation of a stage that keeps nothing is free: its tasks are rows or units of work, and
// not one task for each SM.
func movable(st *ir.Stage) bool { return attends(st) || has(st, ir.GEMV, ir.GEMM, ir.SELECTED) }
