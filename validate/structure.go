package validate

import (
	"fmt"
	"hash/maphash"
	"slices"

	"amkc/ir"
	"amkc/ir/op"
)

// Limits of structure. Positions stay below 2^31 so that products with a coefficient of an affine bound cannot
// overflow.
const (
	maxPosition = op.MaxInt
	maxSMs      = 1 << 16
)

// checkStructure: every index is in range, names are unique, arities and parameters are those that the ops declare. No
// later rule checks an index again.
func (p *Proof) checkStructure() {
	f := p.flat
	if f.Lo < 0 || f.Hi < f.Lo || f.Hi > maxPosition {
		p.Errorf(CodeStructure, "", "the positions are %d to %d, want a non-empty interval in [0, %d]", f.Lo, f.Hi,
			maxPosition)
	}
	if f.SMs < 0 || f.SMs > maxSMs {
		p.Errorf(CodeStructure, "", "there are %d SMs, want 0 to %d", f.SMs, maxSMs)
	}
	tasks, buffers := ir.MaxTasks*p.Ranks(), ir.MaxBuffers*p.Ranks()
	if len(f.Tasks) > tasks || len(f.Buffers) > buffers || len(f.Counters) > tasks || len(f.Pages) > buffers {
		p.Errorf(CodeBudget, "", "%d tasks, %d buffers, %d counters and %d pages, want at most %d tasks and %d buffers",
			len(f.Tasks), len(f.Buffers), len(f.Counters), len(f.Pages), tasks, buffers)
		return
	}
	p.checkNames("buffer", len(f.Buffers), func(i int) string { return f.Buffers[i].Name })
	p.checkNames("page", len(f.Pages), func(i int) string { return f.Pages[i].Name })
	p.checkNames("counter", len(f.Counters), func(i int) string { return f.Counters[i].Name })
	p.checkNames("task", len(f.Tasks), func(i int) string { return f.Tasks[i].Name })
	p.bodies.find(f)
	for i := range f.Tasks {
		if p.Full() {
			return
		}
		p.checkTask(i)
	}
}

func (p *Proof) checkTask(i int) {
	f := p.flat
	t := &f.Tasks[i]
	if t.SM < -1 || t.SM >= f.SMs {
		want := "-1, for there are no SMs"
		if f.SMs > 0 {
			want = fmt.Sprintf("0 to %d, or -1 for none", f.SMs-1)
		}
		p.Errorf(CodeStructure, taskPos(t), "runs on SM %d, want %s", t.SM, want)
	}
	if t.Signal < -1 || t.Signal >= len(f.Counters) {
		p.Errorf(CodeStructure, taskPos(t), "signals counter %d of %d, want an index or -1", t.Signal, len(f.Counters))
	}
	for _, w := range t.Waits {
		if w.Counter < 0 || w.Counter >= len(f.Counters) {
			p.Errorf(CodeStructure, taskPos(t), "waits on counter %d of %d, want an index", w.Counter, len(f.Counters))
		}
	}
	if p.Root(i) != i {
		return
	}
	found := p.errors
	for k := range t.Ops {
		p.checkOp(t, k)
	}
	p.bodies.settle(i, p.errors == found)
}

func (p *Proof) checkOp(t *ir.Task, k int) {
	op := &t.Ops[k]
	if op.Code < 0 || int(op.Code) >= len(ir.Ops) {
		p.Errorf(ir.CodeOperands, taskPos(t), "op %d has opcode %d, want 0 to %d", k, op.Code, len(ir.Ops)-1)
		return
	}
	spec := ir.Ops[op.Code]
	if !spec.In.Has(len(op.In)) {
		p.Errorf(ir.CodeOperands, taskPos(t), "%s has %d inputs, want %v", op.Code, len(op.In), spec.In)
	}
	if !spec.Out.Has(len(op.Out)) {
		p.Errorf(ir.CodeOperands, taskPos(t), "%s has %d outputs, want %v", op.Code, len(op.Out), spec.Out)
	}
	if len(op.InBuf) != len(op.In) || len(op.OutBuf) != len(op.Out) {
		p.Errorf(CodeStructure, taskPos(t), "%s has %d and %d operands but %d and %d buffer indices", op.Code,
			len(op.In), len(op.Out), len(op.InBuf), len(op.OutBuf))
		return
	}
	for i := range op.In {
		p.checkOperand(&op.In[i], op.InBuf[i], t, op.Code)
	}
	for i := range op.Out {
		p.checkOperand(&op.Out[i], op.OutBuf[i], t, op.Code)
	}
	p.checkParams(op, spec, t)
}

func (p *Proof) checkOperand(o *ir.Operand, buf int, t *ir.Task, code ir.Opcode) {
	switch {
	case buf == -1 && (!o.IsTemp() || len(o.Dims) > 0):
		p.Errorf(CodeStructure, taskPos(t), "%s operand %q has no buffer; only temporaries (%%name, no "+
			"ranges) have none", code, o.Buf)
	case buf < -1 || buf >= len(p.flat.Buffers):
		p.Errorf(CodeStructure, taskPos(t), "%s operand %q is buffer %d of %d", code, o.Buf, buf, len(p.flat.Buffers))
	case buf >= 0 && o.IsTemp():
		p.Errorf(CodeStructure, taskPos(t), "%s operand %q is a temporary but has buffer %d", code, o.Buf, buf)
	case buf >= 0 && len(o.Dims) != len(p.flat.Buffers[buf].Shape):
		p.Errorf(ir.CodeShape, taskPos(t), "view of %s has %d ranges, the buffer has %d dimensions",
			p.flat.Buffers[buf].Name, len(o.Dims), len(p.flat.Buffers[buf].Shape))
	}
	for d := range o.Dims {
		r := &o.Dims[d]
		if r.Parts < 0 || r.Block < 0 || r.Shared() && (r.Block < 1 || r.Parts > maxPosition || r.Block > maxPosition) {
			p.Errorf(ir.CodeShape, taskPos(t), "view of %s is distributed in blocks of %d to %d parts, want "+
				"positive numbers", o.Buf, r.Block, r.Parts)
		}
		if unbound(&r.Lo) || unbound(&r.Hi) || r.Shared() && unbound(&r.Part) ||
			r.Lo.Uses(ir.Row) || r.Hi.Uses(ir.Row) || r.Shared() && r.Part.Uses(ir.Row) {
			p.Errorf(CodeStructure, taskPos(t), "view of %s mentions a, b, sm or t; in an unrolled program "+
				"only positions are left", o.Buf)
		}
	}
	if s, known := ir.Sequence(o.Dims); !known || s >= p.flat.Pass.NumSequences() {
		p.Errorf(CodeStructure, taskPos(t), "view %s, want the position of one of %d sequences", o,
			p.flat.Pass.NumSequences())
	}
}

func unbound(e *ir.Expr) bool {
	if _, ok := e.IsConst(); ok {
		return false
	}
	return e.Uses(ir.SpanA) || e.Uses(ir.SpanB) || e.Uses(ir.OnSM)
}

func (p *Proof) checkParams(op *ir.FlatOp, spec *op.Spec, t *ir.Task) {
	for i := range spec.Params {
		if want := &spec.Params[i]; want.Needed && !op.Has(want.Key) {
			p.Errorf(ir.CodeOperands, taskPos(t), "%s lacks parameter %s", op.Code, want.Key).
				Suggest("add %s=", want.Key)
		}
	}
	if most := len(spec.Params); len(op.Params) > most {
		p.Errorf(ir.CodeOperands, taskPos(t), "%s has %d parameters, want at most %d", op.Code, len(op.Params), most)
		return
	}
	for i := range op.Params {
		prm := &op.Params[i]
		if want := spec.Param(prm.Key); want == nil {
			p.Errorf(ir.CodeOperands, taskPos(t), "%s has no parameter %s, want one of %v", op.Code, prm.Key,
				slices.Concat(spec.Keys(true), spec.Keys(false)))
		} else if prm.IsFloat && !want.Real {
			p.Errorf(ir.CodeOperands, taskPos(t), "parameter %s of %s is a float, want an integer", prm.Key, op.Code)
		}
		if !prm.IsFloat && unbound(&prm.Int) {
			p.Errorf(CodeStructure, taskPos(t), "parameter %s of %s mentions a, b or sm; in an unrolled program "+
				"only positions and t are left", prm.Key, op.Code)
		}
		for k := range i {
			if op.Params[k].Key == prm.Key {
				p.Errorf(ir.CodeOperands, taskPos(t), "%s has parameter %s twice", op.Code, prm.Key)
			}
		}
	}
}

// taskPos is the position of a diagnostic about a task.
func taskPos(t *ir.Task) string { return "task " + t.Name }

// checkTarget: every SM that a task runs on is one of the target's. Unrolling makes as many queues as the tasks ask
// for, so that checkStructure alone would not see it.
func (p *Proof) checkTarget() {
	t := p.flat.Target
	if t == nil {
		return
	}
	for i := range p.flat.Tasks {
		if sm := p.flat.Tasks[i].SM; sm >= t.SMs*max(1, p.flat.Ranks) && !p.Full() {
			p.Errorf(CodeStructure, p.Task(int32(i)), "runs on SM %d, target %s has %d", sm, t.Name, t.SMs).
				Suggest("move it to an SM from 0 to %d, or compile for another target", t.SMs-1)
		}
	}
}

// names is a set of names, each of which stands at an index of a list. It is kept from proof to proof, so that a small
// program costs no allocation, and holds no string, so that it keeps no program alive.
type names struct {
	slots []slot // open addressing, a power of two, at most half full
}

type slot struct {
	hash uint32
	at   int32 // index plus 1; 0 for none
}

// nameSeed differs from run to run: nobody can choose names that collide. No result depends on it.
var nameSeed = maphash.MakeSeed()

// reset empties the set and makes room for n names.
func (s *names) reset(n int) {
	size := 8
	for size < 2*n {
		size *= 2
	}
	s.slots = sized(s.slots, size)
}

// add enters a name at index i unless it is there already. It returns the index where it stands, i when it is new.
func (s *names) add(name string, i int, nameAt func(int) string) int {
	k, found := s.find(name, nameAt)
	if !found {
		s.slots[k] = slot{hashOf(name), int32(i) + 1}
	}
	return int(s.slots[k].at) - 1
}

// index returns where a name stands, or -1.
func (s *names) index(name string, nameAt func(int) string) int {
	if k, found := s.find(name, nameAt); found {
		return int(s.slots[k].at) - 1
	}
	return -1
}

func (s *names) find(name string, nameAt func(int) string) (k int, found bool) {
	hash, mask := hashOf(name), len(s.slots)-1
	for k = int(hash) & mask; s.slots[k].at > 0; k = (k + 1) & mask {
		if s.slots[k].hash == hash && nameAt(int(s.slots[k].at)-1) == name {
			return k, true
		}
	}
	return k, false
}

func hashOf(name string) uint32 { return uint32(maphash.String(nameSeed, name)) }

// checkNames: names of one kind of thing are not empty and unique.
func (p *Proof) checkNames(what string, n int, name func(int) string) {
	p.names.reset(n)
	fine := true
	for i := range n {
		s := name(i)
		if s == "" {
			p.Errorf(CodeStructure, "", "%s %d has no name", what, i)
			fine = false
			continue
		}
		fine = p.names.add(s, i, name) == i && fine
	}
	if fine || p.Full() {
		return
	}
	p.names.reset(n)
	for i := range n {
		if p.names.add(name(i), i, name) != i && !p.Full() {
			p.Errorf(CodeStructure, what+" "+name(i), "is defined twice; names are unique among %ss", what)
		}
	}
}
