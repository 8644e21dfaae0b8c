package simulate

import (
	"slices"

	"amkc/ir"
)

// Ahead returns a program in which what the kernel reads ahead of the waits of a task is read by a task of its own, on
// no SM, that waits for nothing in the step; the task waits for it. The kernel reads ahead the matrices, tables, norms
// and frequencies that ops multiply by or look up, and the keys and values of attention. It copies cache rows in whole
// blocks; the other rows of a block are left out, because they are not used.
func Ahead(f *ir.Flat) *ir.Flat {
	out := *f
	out.Tasks, out.Counters = slices.Clone(f.Tasks), slices.Clone(f.Counters)
	for t := range f.Tasks {
		var early []ir.FlatOp
		for k := range f.Tasks[t].Ops {
			op := &f.Tasks[t].Ops[k]
			for _, i := range traitsOf(op.Code).ahead {
				if i < len(op.InBuf) && op.InBuf[i] >= 0 {
					early = append(early, ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: op.In[i : i+1],
						Out: []ir.Operand{{Buf: "%early"}}},
						InBuf: op.InBuf[i : i+1], OutBuf: []int{-1}})
				}
			}
		}
		if len(early) == 0 {
			continue
		}
		name, c := "ahead of "+f.Tasks[t].Name, len(out.Counters)
		out.Counters = append(out.Counters, ir.Counter{Name: name, How: ir.ByCounter})
		out.Tasks = append(out.Tasks, ir.Task{Name: name, SM: -1, Signal: c, Ops: early})
		out.Tasks[t].Waits = append(slices.Clone(f.Tasks[t].Waits), ir.FlatWait{Counter: c, Threshold: 1})
	}
	return &out
}
