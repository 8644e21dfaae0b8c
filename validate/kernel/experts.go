package kernel

import (
	"amkc/ir"
	"amkc/validate"
)

// The producer of an SM streams the matrices that SELECTED_TILE multiplies by. It reads their numbers where the router
// of the SM has left them, and so it waits: it streams nothing later than them before that. A chunk of later tasks
// therefore waits for the choice, and the choice for all that it is made of. The two never wait for one another: the
// ring of an SM has the chunks of its tasks in their order: a later chunk is for a task after the one that chooses,
// and that task waits for the choice anyway, in the order of the SM. So the edges of the ring are among those that the
// proof has, if the numbers are left by a task of the same SM that comes before.

// checkSelected: the numbers of matrices that a task multiplies by are left in shared memory by the router of its SM,
// before it.
func (p *contract) checkSelected() {
	type left struct {
		sm, buffer int
	}
	chosen := map[left]bool{}
	for t := range p.flat.Tasks {
		task := &p.flat.Tasks[t]
		for k := range task.Ops {
			op := &task.Ops[k]
			if op.Code == ir.TOPK && len(op.OutBuf) > 1 {
				chosen[left{task.SM, op.OutBuf[1]}] = true
			}
			if op.Code != ir.SELECTED || chosen[left{task.SM, op.InBuf[2]}] {
				continue
			}
			what := "temporary " + op.In[2].Buf
			if b := op.InBuf[2]; b >= 0 {
				what = p.flat.Buffers[b].Name
			}
			p.Errorf(validate.CodeBackend, p.Task(int32(t)), "takes matrices by the numbers in %s, and no %s on SM %d "+
				"leaves them there before it; the producer of the SM waits for that, and streams nothing else "+
				"meanwhile", what, ir.TOPK, task.SM).
				Suggest("choose on every SM, in a stage before it")
			return
		}
	}
}
