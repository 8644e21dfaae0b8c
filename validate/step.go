package validate

import "amkc/ir"

// checkStep: the step publishes a token, and ends in a join that is after all of its tasks: every task is at or
// hb-before a producer of the counter of role step, and that counter is realised by counting. (In a compiled program
// its producers are the last tasks of all SMs, so that queue order alone says so.) Every SM waits for the counter
// before it begins the next step, whichever variant that runs, so that nothing of the next step can meet anything of
// this one: plain memory, cache rows and exchange words alike. A flagged counter would order the words of the last
// exchange and nothing else, and one of scope sm is seen by its own SM alone.
func (p *Proof) checkStep() {
	f := p.flat
	if !p.writes(ir.RoleNext) {
		p.Errorf(CodeNext, "", "no task writes an I32 IO_OUTPUT of role %s: the step publishes no token", ir.RoleNext).
			Suggest("let the last task write the token there")
	}
	step := p.StepCounter()
	if step < 0 || len(p.counters.producers.of(step)) == 0 {
		p.Errorf(CodeStepJoin, "", "no task signals a counter of role %s: nothing says when the step has ended",
			ir.RoleStep).Suggest("let the last task of every queue signal it")
		return
	}
	name := f.Counters[step].Name
	if f.Counters[step].How != ir.ByCounter {
		p.Errorf(CodeStepJoin, "counter "+name,
			"is flagged, and polled words order nothing but themselves: the next step could begin while tasks of "+
				"this one still read and write").
			Suggest("realise it by counting")
		return
	}
	if f.Counters[step].Scope == ir.ScopeSM {
		p.Errorf(CodeStepJoin, "counter "+name,
			"has scope sm and is seen inside one SM, and every SM waits for it before it begins the next step").
			Suggest("give %s scope gpu", name)
		return
	}
	reached := p.clock.joinFB[step]
	if p.clock.weak {
		reached = p.clock.joinHB[step]
	}
	for t := range f.Tasks {
		if f.Tasks[t].Rank > 0 { // its twin speaks for it
			continue
		}
		if !p.clock.beforeOnAll(int32(t), reached) && !p.Full() {
			p.Errorf(CodeStepJoin, p.Task(int32(t)),
				"no producer of counter %s is after it by queue order and counting, so the step can end while it runs",
				name).
				Suggest("let the last task of its queue signal %s", name)
		}
	}
}

// StepCounter returns the counter that ends the step, or -1.
func (p *Proof) StepCounter() int {
	for i := range p.flat.Counters {
		if p.flat.Counters[i].Role == ir.RoleStep {
			return i
		}
	}
	return -1
}

// writes reports whether a task writes the buffer of a role.
func (p *Proof) writes(role string) bool {
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		if b := &p.flat.Buffers[a.buf]; a.write && b.HasRole(role) {
			return true
		}
	}
	return false
}
