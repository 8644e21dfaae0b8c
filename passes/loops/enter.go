package loops

import (
	"slices"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// enter returns the stage that copies the first value of a chain onto the chip, its result to be named; nothing if
// the buffer that the first call reads can move there itself. It reports false if the copy, which comes before all
// that the first call waits for, could not wait for those who write it.
func (r *roller) enter(g *rolling, c *carrier, a *accesses) (st *ir.Stage, ok bool) {
	first := c.in.reads[0].in(c.run.body()).Buf
	if len(a.reads[first]) == len(c.in.reads) && r.moves(g, c, first, a.writes[first], 0, c.run.start) {
		c.ends[first] = 0
		return nil, true
	}
	st = c.copyStage(c.in.reads, c.reads)
	if st == nil {
		return nil, false
	}
	st.Ops[0].In[0].Buf = first
	if !c.onOwners(a.writes[first], 0, c.run.start) {
		if st.Waits, ok = g.waitsFor(c, a.writes[first]); !ok {
			return nil, false
		}
	}
	st.Signal = g.stepCounter()
	return st, true
}

// leave returns the stage that copies the last value of a chain from the chip, its operand to be named; nothing if
// every call stores what it writes, nobody wants it, or the buffer can move onto the chip itself. It reports false if
// another SM reads it in this step: a stage that waits for the last call would not wait for the copy.
func (r *roller) leave(g *rolling, c *carrier, a *accesses) (*ir.Stage, bool) {
	last := c.out.args[len(c.out.args)-1]
	reads := a.reads[last]
	b := rewrite.NewBuffers(r.p).Find(last, 0)
	switch wanted := b.Kind == ir.Output || b.Kind.OfSequences(); {
	case c.out.usage.has(UsedLive):
		return nil, true
	case len(a.writes[last]) == len(c.out.writes) && r.moves(g, c, last, reads, c.run.end(), len(g.stages)):
		c.ends[last] = c.run.count
		return nil, true
	case !c.onOwners(reads, c.run.end(), len(g.stages)):
		return nil, false
	case !wanted && len(reads) == 0:
		return nil, true
	}
	st := c.copyStage(c.out.writes, c.writes)
	if st == nil {
		return nil, false
	}
	st.Ops[0].Out[0].Buf = last
	st.Signal = g.stepCounter()
	return st, true
}

// moves reports whether a buffer at an end of the chain can be a value of it: it is the program's to place, no other
// loop or chain has it among what it goes through, and what others do with it they do in stages [from, to), on the
// SMs that have its elements in the chain.
func (r *roller) moves(g *rolling, c *carrier, name string, others []access, from, to int) bool {
	buffers := rewrite.NewBuffers(r.p)
	b := buffers.Find(name, 0)
	inLoop := func(a access) bool {
		return slices.ContainsFunc(g.runs, func(o *run) bool { return o.start <= a.stage && a.stage < o.end() })
	}
	return c.carries(b, buffers.Find(c.out.args[0], 0)) && b.Kind == ir.Activation && len(b.Pages) == 0 &&
		!r.copied[name] &&
		!slices.ContainsFunc(others, inLoop) && c.onOwners(others, from, to)
}

// onOwners reports whether what others do with a value they do in stages [from, to), on the SMs that have its elements.
func (c *carrier) onOwners(others []access, from, to int) bool {
	for i := range others {
		views, ok := timedView(&others[i])
		if !ok || others[i].stage < from || others[i].stage >= to || len(views) > mostBoxes || !c.owns(views) {
			return false
		}
	}
	return true
}

// copyStage returns a stage of one copy on the SMs that touch the chain at the given places: at once if a single SM
// does, and what it touches is one box, and otherwise of what each task touches, if no two touch the same. Otherwise
// it returns nothing.
func (c *carrier) copyStage(pls []operandPlace, views []timed) *ir.Stage {
	body := c.run.body()
	st := &ir.Stage{}
	dims := slices.Clone(pls[0].in(body).Dims)
	boxes := make([]box, len(views))
	for i, v := range views {
		boxes[i] = v.box
	}
	whole := merge(boxes)
	if len(whole) == 1 && !slices.ContainsFunc(views, func(v timed) bool { return v.sm != views[0].sm }) {
		for d := range dims {
			dims[d] = ir.Span(ir.Int(whole[0][d][0]), ir.Int(whole[0][d][1]))
		}
		st.Dist = ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: views[0].sm, A: 0, B: 1}}}
	} else {
		for i, v := range views {
			if slices.ContainsFunc(views[:i], v.meets) {
				return nil
			}
		}
		if len(pls) != 1 {
			return nil
		}
		st.Dist = rewrite.CloneStage(body[pls[0].stage]).Dist
	}
	st.Ops = []ir.Op{{Code: ir.COPY, Out: []ir.Operand{{Dims: dims}},
		In: []ir.Operand{{Dims: slices.Clone(dims)}}}}
	return st
}

// waitsFor returns the waits of the first call, up to where it reads the chain, that come after all of these writes.
// It reports false if some are announced in another way, or if what comes before the run waits for the run: then a
// wait ahead of all of the call might never hold.
func (g *rolling) waitsFor(c *carrier, writes []access) (waits []ir.Wait, ok bool) {
	before, all := arrivals(g.stages[:c.run.start]), arrivals(g.stages)
	for _, st := range g.stages[:c.run.start] {
		if slices.ContainsFunc(st.Waits,
			func(w ir.Wait) bool { return w.Threshold > g.initially(w.Counter)+before[w.Counter] }) {
			return nil, false
		}
	}
	reader := 0
	for _, pl := range c.in.reads {
		reader = max(reader, pl.stage)
	}
	for _, a := range writes {
		w := ir.Wait{Counter: a.st.Signal, Threshold: g.initially(a.st.Signal) + all[a.st.Signal]}
		waited := slices.ContainsFunc(c.run.body()[:reader+1],
			func(st *ir.Stage) bool { return slices.Contains(st.Waits, w) })
		if a.stage >= c.run.start || before[w.Counter] < all[w.Counter] || !waited {
			return nil, false
		}
		if !slices.Contains(waits, w) {
			waits = append(waits, w)
		}
	}
	return waits, true
}

// arrivals counts the tasks of stages that signal each counter.
func arrivals(stages []*ir.Stage) map[string]int {
	n := map[string]int{}
	for _, st := range stages {
		n[st.Signal] += len(st.Dist.Tasks(0))
	}
	return n
}

// initially is where a counter starts.
func (g *rolling) initially(counter string) int {
	if k, known := g.counterAt[counter]; known {
		return g.v.Counters[k].Init
	}
	return 0
}

// stepCounter returns the counter of tasks that announce nothing within the step, and declares it if need be. One
// that is waited for after all is not for copies to add to.
func (g *rolling) stepCounter() string {
	name, role := "step", ir.RoleStep
	if k := slices.IndexFunc(g.v.Counters, func(c ir.Counter) bool { return c.Role == ir.RoleStep }); k >= 0 {
		name, role = g.v.Counters[k].Name, ""
	}
	for slices.ContainsFunc(g.stages, func(st *ir.Stage) bool {
		return slices.ContainsFunc(st.Waits, func(w ir.Wait) bool { return w.Counter == name })
	}) {
		name += "_"
	}
	if _, known := g.counterAt[name]; !known {
		g.counterAt[name] = len(g.v.Counters)
		g.v.Counters = append(g.v.Counters, ir.Counter{Name: name, Role: role})
	}
	return name
}
