package validate

import (
	"fmt"

	"amkc/ir"
)

// checkCounters: a wait can be satisfied, and is satisfied only when every producer of the counter is done. A counter
// carries how many tasks arrived, not which: a threshold below the total would let a wait pass with the one producer
// missing whose data it needs. So a wait is a join, and its threshold is Init plus the number of producers.
func (p *Proof) checkCounters() {
	f := p.flat
	p.listCounterTasks()
	for t := range f.Tasks {
		if p.Full() {
			return
		}
		for _, w := range f.Tasks[t].Waits {
			p.checkWait(int32(t), w)
		}
	}
	for i := range f.Counters {
		c := &f.Counters[i]
		if c.How != ir.ByCounter && c.How != ir.Flagged {
			p.Errorf(CodeRealisation, "counter "+c.Name, "its realisation is %s, want counter or flagged", c.How).
				Suggest("write counter, or let pass exchange decide")
		}
		if c.Scope < ir.ScopeGPU || c.Scope > ir.ScopeSystem {
			p.Errorf(CodeScope, "counter "+c.Name, "has scope %s, want gpu, sm or system", c.Scope)
		}
		if c.Init < 0 || c.Init > ir.MaxTasks {
			p.Errorf(CodeStructure, "counter "+c.Name, "starts at %d, want 0 to %d", c.Init, ir.MaxTasks)
		}
		if c.How == ir.Flagged && c.Init != 0 {
			p.Errorf(CodeRealisation, "counter "+c.Name,
				"is flagged and starts at %d, but there is no count, only words", c.Init).
				Suggest("let it start at 0, or realise it as a counter")
		}
		if c.Scope == ir.ScopeSM {
			p.checkOneSM(int32(i))
		}
	}
}

// listCounterTasks lists the producers and the waiters of each counter.
func (p *Proof) listCounterTasks() {
	f := p.flat
	p.producers.begin(len(f.Counters))
	p.waiting.begin(len(f.Counters))
	for t := range f.Tasks {
		if c := f.Tasks[t].Signal; c >= 0 {
			p.producers.count(c)
		}
		for _, w := range f.Tasks[t].Waits {
			p.waiting.count(w.Counter)
		}
	}
	p.producers.turn()
	p.waiting.turn()
	for t := range f.Tasks {
		if c := f.Tasks[t].Signal; c >= 0 {
			p.producers.put(c, t)
		}
		for _, w := range f.Tasks[t].Waits {
			p.waiting.put(w.Counter, t)
		}
	}
}

func (p *Proof) checkWait(t int32, w ir.FlatWait) {
	f := p.flat
	c := &f.Counters[w.Counter]
	producers := p.producers.of(w.Counter)
	total := c.Init + len(producers)
	switch {
	case len(producers) == 0:
		p.Errorf(CodeNoProducer, p.Task(t), "waits for %s >= %d, which no task signals", c.Name, w.Threshold).
			Suggest("drop the wait, or let a task signal it")
	case w.Threshold > total:
		p.Errorf(CodeUnreachable, p.Task(t), "waits for %s >= %d, but it reaches %d (%s)", c.Name, w.Threshold, total,
			sum(c, producers)).Suggest("the threshold is %d", total)
	case w.Threshold < total:
		p.Errorf(CodePartialWait, p.Task(t),
			"waits for %s >= %d of %d (%s): a count does not say which producer is missing", c.Name, w.Threshold, total,
			sum(c, producers)).Suggest("the threshold is %d", total)
	}
}

func sum(c *ir.Counter, producers []int32) string {
	return fmt.Sprintf("init %d + %d producers", c.Init, len(producers))
}

// checkOneSM: a counter of scope sm is only seen inside one SM.
func (p *Proof) checkOneSM(c int32) {
	home := -2
	for _, tasks := range [][]int32{p.producers.of(int(c)), p.waiting.of(int(c))} {
		for _, t := range tasks {
			sm := p.flat.Tasks[t].SM
			if sm < 0 || home >= 0 && sm != home {
				p.outOfScope(t, c, sm, home)
				return
			}
			home = sm
		}
	}
}

func (p *Proof) outOfScope(t, c int32, sm, home int) {
	name := p.flat.Counters[c].Name
	where := fmt.Sprintf("from SM %d, others from SM %d", sm, home)
	if sm < 0 {
		where = "and runs on no SM"
	}
	p.Errorf(CodeScope, p.Task(t), "uses counter %s of scope sm %s", name, where).Suggest("give %s scope gpu", name)
}
