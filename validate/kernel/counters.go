package kernel

import (
	"slices"

	"amkc/ir"
	"amkc/validate"
)

// The kernel implements its counters in its own way, whatever a program declares. So what it always does in one way
// must be declared in that way, and what it does in one of two ways for all counters together must be declared alike:
// otherwise the proof would rest on edges that are not there.

// role is what a counter is for in the kernel, by what its producers do.
type role uint8

const (
	exchanges role = iota // of a vector, realised alike in the whole program
	best                  // of the pair of words by which every SM learns the next token
	barrier               // of all SMs: its producers write nothing
	stepEnd               // the join between two steps: each SM counts there once, after all that it does
)

// realised says how the kernel realises a role whatever the program declares.
var realised = map[role]struct {
	how  ir.Realisation
	what string
}{
	best: {ir.Flagged, "the best values of all SMs are words that carry their epoch, and order nothing " +
		"but themselves"},
	barrier: {ir.ByCounter, "SMs count at a barrier, which has no words to poll"},
	stepEnd: {ir.ByCounter, "SMs count at the end of a step"},
}

// CheckCounters: the kernel realises roles in the way that is fixed, and all exchanges alike; it counts from 0,
// shows its counters to the whole GPU, and waits for one exchange per task. What else the IR can say would not be
// emitted.
func (p *contract) CheckCounters() {
	f := p.flat
	p.checkPass()
	waited, roles := p.waitedCounters(), p.roles()
	if waited == nil {
		return
	}
	for t := range f.Tasks {
		task := &f.Tasks[t]
		if len(task.Waits) == 0 || roles[task.Waits[0].Counter] != barrier {
			continue
		}
		for k := range task.Ops {
			if code := task.Ops[k].Code; code != ir.NOP {
				c := f.Counters[task.Waits[0].Counter].Name
				p.Errorf(validate.CodeBackend, p.Task(int32(t)),
					"runs %s and waits for %s, whose producers write nothing; the kernel waits for such a counter "+
						"at a barrier alone", code, c).
					Suggest("let a task that runs %s alone wait for it", ir.NOP)
				return
			}
		}
	}
	first := -1
	for i := range f.Counters {
		c := &f.Counters[i]
		always, isFixed := realised[roles[i]]
		switch {
		case c.Init != 0:
			p.Errorf(validate.CodeBackend, "counter "+c.Name, "starts at %d, and the kernel counts from 0", c.Init).
				Suggest("let it start at 0, and lower the thresholds")
			return
		case c.Scope != p.scopeOf(i, roles[i]):
			want := p.scopeOf(i, roles[i])
			p.Errorf(validate.CodeBackend, "counter "+c.Name, "has scope %s, and the kernel's is seen by %s", c.Scope,
				seenBy[want]).Suggest("give it scope %s", want)
			return
		case !waited[i] && roles[i] != stepEnd:
		case isFixed && c.How != always.how:
			p.Errorf(validate.CodeBackend, "counter "+c.Name,
				"is declared %s, and the kernel always realises it as %s: %s", c.How, always.how, always.what).
				Suggest("declare it %s", always.how)
			return
		case isFixed:
		case first < 0:
			first, p.exchanges = i, c.How
		case c.How != f.Counters[first].How:
			p.Errorf(validate.CodeBackend, "counter "+c.Name,
				"is realised as %s, and %s as %s; the kernel realises all exchanges alike", c.How,
				f.Counters[first].Name, f.Counters[first].How).
				Suggest("realise both alike")
			return
		}
	}
}

// scopeOf is who sees a counter of the kernel: its own GPU, and where several run a program together, all of them those
// of what they push to each other and the end of the step.
func (p *contract) scopeOf(counter int, of role) ir.Scope {
	if p.Ranks() > 1 && (of == stepEnd || p.pushes(counter)) {
		return ir.ScopeSystem
	}
	return ir.ScopeGPU
}

var seenBy = map[ir.Scope]string{ir.ScopeGPU: "the whole GPU", ir.ScopeSystem: "all GPUs"}

// pushes reports whether a counter announces what is written to the memory of all GPUs.
func (p *contract) pushes(counter int) bool {
	return slices.ContainsFunc(p.flat.Tasks, func(t ir.Task) bool {
		return t.Signal == counter && slices.ContainsFunc(t.Ops, func(op ir.FlatOp) bool {
			return slices.ContainsFunc(op.OutBuf, func(b int) bool {
				return b >= 0 && p.flat.Buffers[b].Space == ir.PeerScratch
			})
		})
	})
}

// gates reports whether a task multiplies a vector by sigmoids of another one, which an exchange before has: the kernel
// keeps that exchange for it.
func gates(ops []ir.FlatOp) bool {
	return len(ops) == 2 && ops[0].Code == ir.SIGMOID && ops[1].Code == ir.MUL
}

// waitedCounters says which counters tasks wait for, or nil where a task has more waits than the kernel supports.
func (p *contract) waitedCounters() []bool {
	f := p.flat
	waited := make([]bool, len(f.Counters))
	for t := range f.Tasks {
		task := &f.Tasks[t]
		if len(task.Waits) > 1 && (len(task.Waits) > 2 || !gates(task.Ops)) {
			p.Errorf(validate.CodeBackend, p.Task(int32(t)), "has %d waits, and a stage body of the kernel has one",
				len(task.Waits)).
				Suggest("wait for %s, if all others come before it",
					f.Counters[task.Waits[len(task.Waits)-1].Counter].Name)
			return nil
		}
		for _, w := range task.Waits {
			waited[w.Counter] = true
		}
	}
	return waited
}

// roles finds the role of each counter. One that best values and vectors are announced by together is that of the
// best values.
func (p *contract) roles() []role {
	f := p.flat
	roles := make([]role, len(f.Counters))
	for i := range roles {
		roles[i] = barrier
	}
	for t := range f.Tasks {
		task := &f.Tasks[t]
		if task.Signal < 0 || roles[task.Signal] == best {
			continue
		}
		for k := range task.Ops {
			if op := &task.Ops[k]; op.Code == ir.SAMPLE && op.IntAt("partial", f.Lo, 0) != 0 {
				roles[task.Signal] = best
			} else if op.Code != ir.NOP && roles[task.Signal] == barrier {
				roles[task.Signal] = exchanges
			}
		}
	}
	if step := p.StepCounter(); step >= 0 {
		roles[step] = stepEnd
	}
	return roles
}
