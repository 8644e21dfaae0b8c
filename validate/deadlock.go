package validate

import (
	"fmt"
	"slices"

	"amkc/ir"
)

// schedule is a symbolic execution of the queues.
type schedule struct {
	order   []int32 // a legal execution order
	pending []int32 // edges into a task that are not yet satisfied
	after   []int32 // the next task on the same SM, or -1
	before  []int32 // the one before it
	last    []int32 // of each SM, so far
	missing []int32 // producers of each counter that have not signalled
}

// checkDeadlock executes the queues symbolically: a task can start when the task before it on its SM is done and every
// counter it waits on is complete. Tasks only ever become ready, so if one legal order runs dry with tasks left, every
// order does, and then there is a cycle of queue and counter edges to show.
func (p *Proof) checkDeadlock() {
	f := p.flat
	n := len(f.Tasks)
	q := &p.schedule
	q.pending, q.after, q.missing = sized(q.pending, n), sized(q.after, n), sized(q.missing, len(f.Counters))
	pending, after, missing := q.pending, q.after, q.missing
	for c := range missing {
		missing[c] = int32(len(p.counters.producers.of(c)))
	}
	before := q.queueBefore(f)
	for t := range after {
		after[t] = -1
	}
	for t := range f.Tasks {
		if pending[t] = int32(len(f.Tasks[t].Waits)); f.Tasks[t].Rank > 0 {
			pending[t] = -1 // it runs with its twin
		}
		if b := before[t]; b >= 0 {
			pending[t]++
			after[b] = int32(t)
		}
	}
	p.schedule.order = sized(p.schedule.order, n)[:0]
	for t := range pending {
		if pending[t] == 0 {
			p.schedule.order = append(p.schedule.order, int32(t))
		}
	}
	done := func(t int32) {
		if pending[t]--; pending[t] == 0 {
			p.schedule.order = append(p.schedule.order, t)
		}
	}
	for i := 0; i < len(p.schedule.order); i++ {
		t := p.schedule.order[i]
		if f.Tasks[t].Rank == 0 {
			p.schedule.order = append(p.schedule.order, p.peers.of(t)...)
		}
		if after[t] >= 0 {
			done(after[t])
		}
		if c := f.Tasks[t].Signal; c >= 0 {
			if missing[c]--; missing[c] == 0 {
				for _, w := range p.counters.waiting.of(c) {
					done(w)
				}
			}
		}
	}
	if len(p.schedule.order) < n {
		p.reportCycle(pending, before, missing)
	}
}

// queueBefore returns for each task the one before it on its SM, or -1.
func (q *schedule) queueBefore(f *ir.Flat) []int32 {
	q.last, q.before = sized(q.last, f.SMs), sized(q.before, len(f.Tasks))
	last, before := q.last, q.before
	for sm := range last {
		last[sm] = -1
	}
	for t := range f.Tasks {
		before[t] = -1
		if sm := f.Tasks[t].SM; sm >= 0 && f.Tasks[t].Rank == 0 {
			before[t], last[sm] = last[sm], int32(t)
		}
	}
	return before
}

// reportCycle walks backwards from a task that cannot start, always to one that it needs and that cannot start either,
// until a task comes up twice.
func (p *Proof) reportCycle(pending, before, missing []int32) {
	f := p.flat
	stuck := func(t int32) bool { return pending[t] > 0 }
	at := int32(0)
	for !stuck(at) {
		at++
	}
	var path []int32
	var edges []string // edges[i] says why path[i] needs path[i+1]
	var queued []bool  // edges[i] is one of queue order
	place := map[int32]int{}
	for {
		if start, seen := place[at]; seen {
			d := p.Errorf(CodeDeadlock, p.Task(at), "can never start: it needs itself, over %d edges", len(edges)-start)
			d.Suggest("%s", p.breakCycle(path[start:], queued[start:]))
			shown := edges[start:]
			if len(shown) > maxCycleLines {
				d.With(shown[:maxCycleLines]...)
				d.With(fmt.Sprintf("and %d more edges back to %s", len(shown)-maxCycleLines, f.Tasks[at].Name))
				return
			}
			d.With(shown...)
			return
		}
		place[at] = len(path)
		path = append(path, at)
		queue := true
		next, why := before[at], fmt.Sprintf("%s is queued on sm %d after ", f.Tasks[at].Name, f.Tasks[at].SM)
		if next < 0 || !stuck(next) {
			queue = false
			for _, w := range f.Tasks[at].Waits {
				if missing[w.Counter] == 0 {
					continue
				}
				producers := p.counters.producers.of(w.Counter)
				next = producers[slices.IndexFunc(producers, stuck)]
				why = fmt.Sprintf("%s waits for %s, which is signalled by ", f.Tasks[at].Name,
					f.Counters[w.Counter].Name)
				break
			}
		}
		edges, queued = append(edges, why+f.Tasks[next].Name), append(queued, queue)
		at = next
	}
}

// maxCycleLines bounds how much of a cycle is printed.
const maxCycleLines = 64

// breakCycle names one edge of a cycle that could go: one of queue order, if there is any, for waits are there for a
// reason.
func (p *Proof) breakCycle(path []int32, queued []bool) string {
	k := slices.Index(queued, true)
	if k < 0 {
		return "drop one of these waits"
	}
	late, early := p.flat.Tasks[path[k]], p.flat.Tasks[path[(k+1)%len(path)]]
	return fmt.Sprintf("put %s before %s in the queue of sm %d, or drop one of these waits", late.Name, early.Name,
		late.SM)
}
