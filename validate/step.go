package validate

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// stepCounter is the counter whose completion ends a step, and nextBuffer the output that is the token of the next one.
const (
	stepCounter = "step"
	nextBuffer  = "next"
)

// checkStep: the step hands on a token, and ends in a join that is after all of its tasks: every task is at or before a
// producer of counter step.
func (p *proof) checkStep() {
	f := p.flat
	if !p.writes(nextBuffer) {
		p.errorf(CodeNext, "", "no task writes %s, an I32 IO_OUTPUT: the step hands on no token", nextBuffer).Suggest("let the last task write the token there")
	}
	step := -1
	for i := range f.Counters {
		if f.Counters[i].Name == stepCounter {
			step = i
		}
	}
	if step < 0 || len(p.producers.of(step)) == 0 {
		p.errorf(CodeStepJoin, "", "no task signals a counter named %s: nothing says when the step has ended", stepCounter).Suggest("let the last task of every queue signal it")
		return
	}
	reached := make([]int32, len(p.clock.length))
	for _, q := range p.producers.of(step) {
		reached = join(reached, p.clock.fb[q])
	}
	for t := range f.Tasks {
		if !p.clock.before(int32(t), reached) && !p.full() {
			p.errorf(CodeStepJoin, p.task(int32(t)), "no producer of counter %s is after it, so the step can end while it runs", stepCounter).Suggest("let the last task of its queue signal %s", stepCounter)
		}
	}
}

func (p *proof) writes(name string) bool {
	for i := range p.accesses {
		if b := &p.flat.Buffers[p.accesses[i].buf]; p.accesses[i].write && b.Name == name && b.Kind == ir.Output && b.DType == ir.I32 {
			return true
		}
	}
	return false
}

// checkStepEdges: the step-end edge is realised in every SM by what its last task of the step has seen. Whatever that
// task is fb-after is over when the SM begins the next step (release with the words of the last exchange, acquire, fence),
// and nothing else is. What runs late, beside the last tasks of other SMs, must therefore not conflict with the next step
// of an SM that has not waited for it, whichever variant that step belongs to:
//   - other conflicts: none at all, unless on the same SM;
//   - exchange words that a late task reads: the write must be fb-after the first task of some SM that had waited for it.
//
// It holds between any two variants. If counter step is realised by counting, every SM polls it before it begins the next
// step, and that edge orders everything. One finding is enough: they come by the hundred.
func checkStepEdges(proofs []*proof) diag.List {
	var diags diag.List
	late := make([][]int32, len(proofs))
	for i, a := range proofs {
		if !a.stepCounted() {
			late[i] = a.lateAccesses(proofs)
		}
	}
	for _, b := range proofs {
		b.groupByLocation(proofs, late)
	}
	for i, a := range proofs {
		for _, b := range proofs {
			informed := noTask // the task that a.informed is of
			for _, k := range late[i] {
				if t := a.accesses[k].task; t != informed {
					a.findInformed(t)
					informed = t
				}
				if d := a.crossStep(b, &a.accesses[k]); d != nil {
					diags.Add(d)
					return diags
				}
			}
		}
	}
	return diags
}

func (p *proof) stepCounted() bool {
	for i := range p.flat.Counters {
		if c := &p.flat.Counters[i]; c.Name == stepCounter {
			return c.How == ir.ByCounter
		}
	}
	return false
}

// lateAccesses lists the accesses outside on-chip memory of tasks that the last task of some SM in use is not after.
func (p *proof) lateAccesses(proofs []*proof) []int32 {
	c := &p.clock
	sure := slices.Clone(c.length)
	for sm := range c.last {
		used := slices.ContainsFunc(proofs, func(q *proof) bool { return sm < len(q.clock.last) && q.clock.last[sm] >= 0 })
		for chain := range sure {
			if used {
				sure[chain] = min(sure[chain], p.seenAtEnd(sm, int32(chain)))
			}
		}
	}
	var late []int32
	for i := range p.accesses {
		a := &p.accesses[i]
		if l := &p.locs[a.loc]; l.space != ir.SMEM && l.space != ir.Register && c.index[a.task] > sure[c.chain[a.task]] {
			late = append(late, int32(i))
		}
	}
	return late
}

// seenAtEnd is the number of tasks of a chain that are over when an SM ends its step.
func (p *proof) seenAtEnd(sm int, chain int32) int32 {
	if sm < len(p.clock.last) && p.clock.last[sm] >= 0 {
		return at(p.clock.fb[p.clock.last[sm]], chain)
	}
	return 0
}

// crossStep compares a late access with the conflicting ones of a next step, a run of variant q.
func (p *proof) crossStep(q *proof, a *access) *diag.Diagnostic {
	l := &p.locs[a.loc]
	others := q.byLocation.of(int(a.loc))
	if p.work.pairs += len(others); p.work.pairs > maxPairs {
		return diag.Errorf(CodeBudget, p.task(a.task), "the proof needs more than %d pairs of views across steps; it stops here, and what is not proved is refused", maxPairs)
	}
	for _, k := range others {
		b := &q.accesses[k]
		if !a.write && !b.write || !p.mayOverlap(q, a, b) {
			continue
		}
		sm := q.flat.Tasks[b.task].SM
		if sm >= 0 && (sm == p.flat.Tasks[a.task].SM || sm < len(p.informs) && p.informs[sm]) {
			continue
		}
		if l.words && !a.write && p.passedOn(q, b.task) {
			continue
		}
		return p.reportStepEdge(q, a, b)
	}
	return nil
}

func (p *proof) reportStepEdge(q *proof, a, b *access) *diag.Diagnostic {
	d := diag.Errorf(CodeStepEdge, p.task(a.task), "%s %s while %s%s of the next step may already %s it: the last task of that SM is not after it, and neither is a wait of the next step that comes before",
		does(a), p.view(a), q.who(b.task), q.ofVariant(p), strings.TrimSuffix(does(b), "s"))
	locate(d)
	d.Other, d.Buffer = q.flat.Tasks[b.task].Name, p.flat.Buffers[a.buf].Name
	if sm := p.flat.Tasks[a.task].SM; sm >= 0 {
		return d.Suggest("realise counter %s by counting, or give SM %d a task that an earlier exchange of the step waits for", stepCounter, sm)
	}
	return d.Suggest("realise counter %s by counting", stepCounter)
}

// findInformed lists the SMs that have seen a late task at their step end.
func (p *proof) findInformed(t int32) {
	chain, index := p.clock.chain[t], p.clock.index[t]
	p.informed, p.informs = p.informed[:0], sized(p.informs, len(p.clock.last))
	for sm := range p.clock.last {
		if p.seenAtEnd(sm, chain) >= index {
			p.informed, p.informs[sm] = append(p.informed, int32(sm)), true
		}
	}
}

// passedOn: task t of the next step is fb-after the first task of an SM that had seen the late task at its step end.
func (p *proof) passedOn(q *proof, t int32) bool {
	for _, sm := range p.informed {
		if int(sm) >= len(q.clock.chainOf) {
			break
		}
		if first := q.clock.chainOf[sm]; first >= 0 && at(q.clock.fb[t], first) >= 1 {
			return true
		}
	}
	return false
}

// groupByLocation lists the accesses of a variant to each location that late ones of any variant touch. All variants are
// unrolled from the buffers and pages of one program, so that a location has one number in all of them.
func (p *proof) groupByLocation(proofs []*proof, late [][]int32) {
	p.touchedLate = sized(p.touchedLate, len(p.locs))
	for i, q := range proofs {
		for _, k := range late[i] {
			p.touchedLate[q.accesses[k].loc] = true
		}
	}
	p.byLocation.begin(len(p.locs))
	for i := range p.accesses {
		if l := p.accesses[i].loc; p.touchedLate[l] {
			p.byLocation.count(int(l))
		}
	}
	p.byLocation.turn()
	for i := range p.accesses {
		if l := p.accesses[i].loc; p.touchedLate[l] {
			p.byLocation.put(int(l), i)
		}
	}
}

// mayOverlap compares the hulls of two accesses in different steps; views that depend on pos count as everything.
func (p *proof) mayOverlap(q *proof, a, b *access) bool {
	if p.locs[a.loc].symbolic || q.locs[b.loc].symbolic {
		return true
	}
	lo1, hi1, ok1 := p.hull(a)
	lo2, hi2, ok2 := q.hull(b)
	return ok1 && ok2 && lo1 < hi2 && lo2 < hi1
}

func (p *proof) hull(a *access) (lo, hi int, ok bool) {
	if a.from == a.to {
		return 0, 0, false
	}
	l := &p.locs[a.loc]
	return l.bounds[p.runs[a.from].lo], l.bounds[p.runs[a.to-1].hi], true
}

func itoa(n int) string { return fmt.Sprint(n) }

// ofVariant names the variant of a task, if it is not that of p.
func (q *proof) ofVariant(p *proof) string {
	if q == p {
		return ""
	}
	return " in variant " + q.flat.Name
}
