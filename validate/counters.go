package validate

import (
	"fmt"

	"amkc/ir"
)

// counterTasks are the tasks that use each counter.
type counterTasks struct {
	producers lists // that signal it
	waiting   lists // that wait on it, once for each wait
}

// checkCounters: a wait can be satisfied, and is satisfied only when every producer of the counter is done. A counter
// carries how many tasks arrived, not which: a threshold below the total would let a wait pass with the one producer
// missing whose data it needs. So a wait is a join, and its threshold is Init plus the number of producers.
func (p *Proof) checkCounters() {
	f := p.flat
	p.counters.list(f)
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

// list lists the producers and the waiters of each counter.
func (c *counterTasks) list(f *ir.Flat) {
	c.producers.begin(len(f.Counters))
	c.waiting.begin(len(f.Counters))
	for t := range f.Tasks {
		if k := f.Tasks[t].Signal; k >= 0 {
			c.producers.count(k)
		}
		for _, w := range f.Tasks[t].Waits {
			c.waiting.count(w.Counter)
		}
	}
	c.producers.offsets()
	c.waiting.offsets()
	for t := range f.Tasks {
		if k := f.Tasks[t].Signal; k >= 0 {
			c.producers.put(k, t)
		}
		for _, w := range f.Tasks[t].Waits {
			c.waiting.put(w.Counter, t)
		}
	}
}

func (p *Proof) checkWait(t int32, w ir.FlatWait) {
	f := p.flat
	c := &f.Counters[w.Counter]
	producers := p.counters.producers.of(w.Counter)
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
	for _, tasks := range [][]int32{p.counters.producers.of(int(c)), p.counters.waiting.of(int(c))} {
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

// maxExchanges is the number of epochs that a 16-bit tag can tell apart; 0 is that of a cleared page.
const maxExchanges = 1<<16 - 1

// checkEpochs: a reader knows the words of an exchange by its epoch, which counts exchanges and starts over. No step
// has so many that a word left from the last step could have the epoch that a reader waits for.
func (p *Proof) checkEpochs() {
	exchanges := 0
	for i := range p.flat.Counters {
		if p.flat.Counters[i].How == ir.Flagged && len(p.counters.producers.of(i)) > 0 {
			exchanges++
		}
	}
	if exchanges >= maxExchanges {
		p.Errorf(CodeEpochs, "", "there are %d flagged counters, and epochs tell fewer than %d exchanges apart",
			exchanges, maxExchanges).
			Suggest("realise %d of them by counting", exchanges-maxExchanges+1)
	}
}

// lists is a list of numbers for each key, packed. It is made in two passes over the same items in the same order:
// begin, count each, offsets, put each.
type lists struct {
	start []int32
	items []int32
	next  []int32
}

func (l *lists) of(key int) []int32 { return l.items[l.start[key]:l.start[key+1]] }

func (l *lists) begin(keys int) { l.start = sized(l.start, keys+1) }

func (l *lists) count(key int) { l.start[key+1]++ }

func (l *lists) offsets() {
	keys := len(l.start) - 1
	for k := range keys {
		l.start[k+1] += l.start[k]
	}
	l.items = sized(l.items, int(l.start[keys]))
	l.next = append(l.next[:0], l.start[:keys]...)
}

func (l *lists) put(key, item int) {
	l.items[l.next[key]] = int32(item)
	l.next[key]++
}

// common returns the counter whose producers are just these tasks, or -1.
func (c *counterTasks) common(f *ir.Flat, tasks []int32) int32 {
	if len(tasks) == 0 {
		return -1
	}
	k := f.Tasks[tasks[0]].Signal
	if k < 0 || len(c.producers.of(k)) != len(tasks) {
		return -1
	}
	for _, t := range tasks {
		if f.Tasks[t].Signal != k {
			return -1
		}
	}
	return int32(k)
}
