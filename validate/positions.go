package validate

import "amkc/ir"

// checkPositions decides what the symbolic proof could not, exactly: it repeats the walk of checkMemory over the
// location for every position. The clocks do not depend on pos: no wait does, and views that do are of plain memory,
// which has no part in fb.
func (p *Proof) checkPositions() {
	for i := range p.locs {
		l := &p.locs[i]
		output := len(l.bufs) == 0 || p.flat.Buffers[l.bufs[0]].Kind == ir.Output
		if !l.symbolic || !l.suspect && !output {
			continue
		}
		var trace []*access
		for _, t := range p.order {
			for k := p.first[t]; k < p.first[t+1]; k++ {
				if p.accesses[k].loc == int32(i) {
					trace = append(trace, &p.accesses[k])
				}
			}
		}
		// The ends first: most mistakes show there.
		if !p.tryPosition(l, trace, p.flat.Lo) || !p.tryPosition(l, trace, p.flat.Hi) {
			continue
		}
		for pos := p.flat.Lo + 1; pos < p.flat.Hi && p.tryPosition(l, trace, pos); pos++ {
		}
	}
}

// tryPosition walks one location at one position, and reports whether it found nothing wrong.
func (p *Proof) tryPosition(l *location, trace []*access, pos int) bool {
	found := p.errors
	p.stats.Positions++
	at := *l
	b := &p.flat.Buffers[l.bufs[0]]
	var x expander
	var runs []run
	ends := make([]int, len(trace)+1)
	for i, a := range trace {
		runs = append(runs, x.expand(b, a.dims(p.flat), pos, l.paged)...)
		if !p.spend(&p.work.evals, 1+len(runs)-ends[i]+x.dropped, maxEvals, "views at single positions", a.task) {
			return false
		}
		ends[i+1] = len(runs)
	}
	if !p.cut(&at, runs, pos) {
		return false
	}
	var before []int32
	for i, a := range trace {
		if p.clock.weak {
			before = p.clock.kept[a.task]
		} else {
			before = p.clock.joinDone(before[:0], a.task)
		}
		s := sweep{p: p, task: a.task, hb: before, fb: before, pos: pos, tried: true}
		after := 0
		for _, r := range runs[ends[i]:ends[i+1]] {
			r = at.segments(r, after)
			after = r.hi
			if !p.spend(&p.work.visits, r.hi-r.lo, maxVisits, "comparisons of memory ranges", a.task) {
				return false
			}
			for k := r.lo; k < r.hi && p.errors == found && !p.Full(); k++ {
				s.touchRun(&at, run{k, k + 1}, a)
			}
		}
	}
	for i := range at.segs {
		at.segs[i].readers.clear(&p.clock)
	}
	if b.Kind == ir.Output && p.errors == found {
		p.checkWritten(b, &at, (&sweep{pos: pos, tried: true}).at())
	}
	return p.errors == found && !p.work.over
}
