package validate

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/op"
	"amkc/validate/views"
)

// A state is what steps make of it, one after another. That each takes it as the one before has left it, and that the
// next may begin where this one says, holds if one task of each step has each element: it reads what it writes, so that
// no other task sees the state before it or after it. The steps themselves are in an order (checkStep).

// checkKept: what an op keeps is the very view that it reads.
func (p *Proof) checkKept(o *ir.FlatOp, form *op.Form, out int) {
	n := 0 // which of those that are kept
	for i := range out {
		if form.Output(i).Role == op.Kept {
			n++
		}
	}
	for i := range o.In {
		if form.Input(i).Role != op.Kept {
			continue
		}
		if n--; n < 0 {
			if o.InBuf[i] < 0 || o.InBuf[i] != o.OutBuf[out] || !views.Same(o.In[i].Dims, o.Out[out].Dims) {
				p.ops.call.Fail("output %d is not the view of input %d, which it keeps for the next step", out+1, i+1)
			}
			return
		}
	}
}

// checkStates: each element of a state is kept by one task of the step, whatever the position.
func (p *Proof) checkStates() {
	kept := make([][]*access, len(p.flat.Buffers))
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		b := &p.flat.Buffers[a.buf]
		if b.Kind != ir.Recurrent {
			continue
		}
		code := p.flat.Tasks[a.task].Ops[a.op].Code
		form := ir.Ops[code].Forms[0]
		role := form.Input(int(a.arg)).Role
		if a.write {
			role = form.Output(int(a.arg)).Role
		}
		switch {
		case role != op.Kept:
			p.Errorf(CodeState, p.Task(a.task), "%s %s %s, which is a STATE, and does not keep it", code, does(a),
				p.view(a))
		case a.symbolic:
			p.Errorf(CodeState, p.Task(a.task), "%s keeps %s, which depends on the position; want the same elements "+
				"at each", code, p.view(a))
		case a.write:
			kept[a.buf] = append(kept[a.buf], a)
		}
		if p.Full() {
			return
		}
	}
	for b := range p.flat.Buffers {
		if p.flat.Buffers[b].Kind == ir.Recurrent && !p.checkState(&p.flat.Buffers[b], kept[b]) {
			return
		}
	}
}

// checkState holds the views of a state that tasks keep to be apart, and to be all of it.
func (p *Proof) checkState(b *ir.Buffer, kept []*access) bool {
	type piece struct {
		run
		by *access
	}
	var pieces []piece
	for _, a := range kept {
		runs := p.mem.expanders[0].expand(b, a.dims(p.flat), p.flat.Lo, false)
		if !p.spend(&p.work.runs, 1+len(runs), maxRuns, "contiguous pieces of views", a.task) {
			return false
		}
		for _, r := range runs {
			pieces = append(pieces, piece{r, a})
		}
	}
	slices.SortFunc(pieces, func(x, y piece) int { return cmp.Compare(x.lo, y.lo) })
	end := 0
	for i, x := range pieces {
		if x.lo > end {
			break
		}
		if x.lo < end {
			p.Errorf(CodeState, p.Task(x.by.task), "keeps %s, of which %s keeps elements too; want one task for each",
				p.view(x.by), p.Who(pieces[i-1].by.task))
			return !p.Full()
		}
		end = x.hi
	}
	if end < b.Numel() {
		p.Errorf(CodeState, bufferPos(b), "has element %v, which no task of the step keeps for the next; want one for "+
			"each element", coordinates(b, end))
	}
	return !p.Full()
}
