package validate

import (
	"amkc/ir"
	"amkc/validate/views"
)

// Locations with views that depend on pos are proved for all positions at once, view against view: two conflicting
// views must be ordered by hb, or be apart in some dimension at every position; a read must be initial state, or lie
// inside one earlier write, at every position. That is sufficient, not necessary: where it fails, checkPositions
// decides.

// symbolicViews are the views of symbolic locations, in groups that share no element and in the form in which they are
// compared.
type symbolicViews struct {
	byLocation lists
	groups     []int32          // the last view so far of each group, -1 for none
	earlier    []int32          // for each of these accesses: the one before it in its group, -1 for none
	groupBase  []int32          // the first group of each location
	forms      []views.Range    // of all views
	pair       [2][]views.Range // of the two views
	keys       []views.Key
	intervals  []views.Interval
}

// refuseSymbolic reports a view that depends on pos where none may.
func (p *Proof) refuseSymbolic(l *location) {
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		if &p.mem.locs[a.loc] != l || !a.symbolic {
			continue
		}
		what := "exchange words, which are the same ones at every position"
		switch {
		case l.space == ir.SMEM || l.space == ir.Register:
			what = "on-chip memory, which has the same owner at every position"
		case !l.words:
			what = "memory that several buffers share"
		}
		d := p.Errorf(CodeSymbolic, p.Task(a.task), "%s %s, a view that depends on pos, of %s", does(a), p.view(a),
			what)
		d.Buffer = p.flat.Buffers[a.buf].Name
		d.Suggest("use constant bounds")
		return
	}
}

// groupViews sorts the views of symbolic locations into groups that share no element, by the dimensions in which no
// view depends on pos (the heads of a cache) or all views are parts of one dealing (its splits), so that few pairs
// are left to compare.
func (p *Proof) groupViews() {
	p.symbolic.groups = p.symbolic.groups[:0]
	if p.listSymbolic(); len(p.symbolic.byLocation.items) == 0 {
		return
	}
	p.formViews()
	p.symbolic.earlier = sized(p.symbolic.earlier, len(p.mem.accesses))
	p.symbolic.groupBase = sized(p.symbolic.groupBase, len(p.mem.locs))
	for i := range p.mem.locs {
		if list := p.symbolic.byLocation.of(i); len(list) > 0 && !p.groupAlike(i, list) {
			p.groupLocation(i, list)
		}
	}
}

// groupAlike takes the groups of an earlier location if all views are those of its tasks' bodies there. That location
// may have more views and so fewer groups, which is no less right.
func (p *Proof) groupAlike(loc int, list []int32) bool {
	first := p.sameAccess(list[0])
	if first == nil || int(first.loc) >= loc || !p.mem.locs[first.loc].symbolic {
		return false
	}
	for _, v := range list {
		if like := p.sameAccess(v); like == nil || like.loc != first.loc {
			return false
		}
	}
	from, base := p.symbolic.groupBase[first.loc], int32(len(p.symbolic.groups))
	p.symbolic.groupBase[loc] = base
	for _, v := range list {
		g := p.sameAccess(v).from - from + base
		for int(g) >= len(p.symbolic.groups) {
			p.symbolic.groups = append(p.symbolic.groups, -1)
		}
		p.mem.accesses[v].from = g
	}
	return true
}

func (p *Proof) groupLocation(loc int, list []int32) {
	groups := map[views.Key]int32{}
	p.symbolic.keys = sized(p.symbolic.keys, len(list))
	for d := range p.mem.accesses[list[0]].dims(p.flat) {
		if !p.components(list, d) {
			p.parts(list, d)
		}
	}
	p.symbolic.groupBase[loc] = int32(len(p.symbolic.groups))
	for k, v := range list {
		g, ok := groups[p.symbolic.keys[k]]
		if !ok {
			g = int32(len(p.symbolic.groups))
			groups[p.symbolic.keys[k]] = g
			p.symbolic.groups = append(p.symbolic.groups, -1)
		}
		p.mem.accesses[v].from = g
	}
}

// listSymbolic lists the views of each symbolic location.
func (p *Proof) listSymbolic() {
	p.symbolic.byLocation.begin(len(p.mem.locs))
	list := p.symbolic.earlier[:0] // which is not in use yet
	for i := range p.mem.accesses {
		if l := p.mem.accesses[i].loc; p.mem.locs[l].symbolic {
			list = append(list, int32(i))
			p.symbolic.byLocation.count(int(l))
		}
	}
	p.symbolic.byLocation.offsets()
	for _, v := range list {
		p.symbolic.byLocation.put(int(p.mem.accesses[v].loc), int(v))
	}
	p.symbolic.earlier = list
}

// components numbers the views by connected overlap in dimension d, if none depends on pos there.
func (p *Proof) components(list []int32, d int) bool {
	spans := p.symbolic.intervals[:0]
	for _, v := range list {
		s, ok := views.Ends(&p.mem.accesses[v].dims(p.flat)[d])
		if !ok {
			return false
		}
		spans = append(spans, s)
	}
	p.symbolic.intervals = spans
	starts := views.Pieces(spans)
	for k, v := range list {
		s, _ := views.Ends(&p.mem.accesses[v].dims(p.flat)[d])
		p.symbolic.keys[k][d] = views.PieceOf(s, starts)
	}
	return true
}

// parts numbers the views by the part they take of dimension d, if all take constant parts of one dealing.
func (p *Proof) parts(list []int32, d int) {
	first := &p.mem.accesses[list[0]].dims(p.flat)[d]
	for _, v := range list {
		r := &p.mem.accesses[v].dims(p.flat)[d]
		if _, ok := r.Part.IsConst(); !ok || !r.Shared() || r.Block != first.Block || r.Parts != first.Parts {
			return
		}
	}
	for k, v := range list {
		part, _ := p.mem.accesses[v].dims(p.flat)[d].Part.IsConst()
		p.symbolic.keys[k][d] = int32(part)
	}
}

// symbolic compares the k-th access with the earlier ones of its group.
func (s *sweep) symbolic(l *location, k int32) {
	p := s.p
	if p.clock.weak {
		p.clock.keep(s.task, s.hb)
	}
	a := &p.mem.accesses[k]
	b, dims := &p.flat.Buffers[a.buf], p.formOf(a)
	defined := a.write || p.oldRows(b, dims) || views.Empty(dims)
	pairs := 1
	for i := p.symbolic.groups[a.from]; i >= 0; i = p.symbolic.earlier[i] {
		e := &p.mem.accesses[i]
		pairs++
		ordered := e.task == s.task || p.clock.before(e.task, s.hb)
		if !ordered && (e.write || a.write) && !views.Disjoint(p.formOf(e), dims) {
			l.suspect = true
		}
		if !defined && ordered && e.write && views.Inside(dims, p.formOf(e)) {
			defined = true
		}
	}
	l.suspect = l.suspect || !defined || b.Kind == ir.Output
	p.symbolic.groups[a.from], p.symbolic.earlier[k] = k, p.symbolic.groups[a.from]
	p.spend(&p.work.pairs, pairs, maxPairs, "pairs of views that depend on pos", s.task)
}

// formOf returns the form of an access to a symbolic location.
func (p *Proof) formOf(a *access) []views.Range {
	return p.symbolic.forms[a.to : int(a.to)+len(p.flat.Buffers[a.buf].Shape)]
}

// formViews brings the views of symbolic locations into the form in which they are compared. Those of tasks of one
// body have one.
func (p *Proof) formViews() {
	p.symbolic.forms = p.symbolic.forms[:0]
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		if !p.mem.locs[a.loc].symbolic {
			continue
		}
		if like := p.sameAccess(int32(i)); like != nil && p.mem.locs[like.loc].symbolic {
			a.to = like.to
			continue
		}
		a.to = int32(len(p.symbolic.forms))
		p.symbolic.forms = p.positions.Append(p.symbolic.forms, a.dims(p.flat))
	}
}

// oldRows reports whether a view of a cache covers rows below the position of its sequence alone, at every position.
func (p *Proof) oldRows(b *ir.Buffer, dims []views.Range) bool {
	if b.Kind != ir.KVCache {
		return false
	}
	first, end := 0, 1
	if p.flat.Pass.NumSequences() > 1 {
		first, end = dims[0].Ends()
	}
	for s := first; s < end; s++ {
		if !dims[views.RowsDim(b)].Hi.AtMost(views.Between(p.flat.Lo, p.flat.Hi, s)) {
			return false
		}
	}
	return first < end
}

// checkPositions decides what the symbolic proof could not, exactly: it repeats the walk of checkMemory over the
// location for every position. The clocks do not depend on pos: no wait does, and views that do are of plain memory,
// which has no part in fb. Several sequences have that position together, which is not a loss for a cache: what befalls
// an element there depends on the position of its sequence alone. Of other memory there would be all combinations to
// try.
func (p *Proof) checkPositions() {
	for i := range p.mem.locs {
		l := &p.mem.locs[i]
		output := len(l.bufs) == 0 || p.flat.Buffers[l.bufs[0]].Kind == ir.Output
		if !l.symbolic || !l.suspect && !output {
			continue
		}
		var trace []*access
		for _, t := range p.schedule.order {
			for k := p.mem.first[t]; k < p.mem.first[t+1]; k++ {
				if p.mem.accesses[k].loc == int32(i) {
					trace = append(trace, &p.mem.accesses[k])
				}
			}
		}
		if a := p.otherSequence(l, trace); a != nil {
			p.Errorf(CodeSymbolic, p.Task(a.task), "%s %s, by the position of another sequence than other tasks, and "+
				"it cannot be proved for all positions at once", does(a), p.view(a)).
				Suggest("give each sequence a buffer of its own")
			continue
		}
		// The ends first: most mistakes show there.
		if !p.tryPosition(l, trace, p.flat.Lo) || !p.tryPosition(l, trace, p.flat.Hi) {
			continue
		}
		for pos := p.flat.Lo + 1; pos < p.flat.Hi && p.tryPosition(l, trace, pos); pos++ {
		}
	}
}

// otherSequence returns a view of memory that is not a cache which depends on the position of another sequence than a
// view before it; nil if there is none.
func (p *Proof) otherSequence(l *location, trace []*access) *access {
	first := -1
	if p.flat.Buffers[l.first].Kind == ir.KVCache {
		return nil
	}
	for _, a := range trace {
		s, _ := ir.Sequence(a.dims(p.flat))
		if s >= 0 && first >= 0 && s != first {
			return a
		}
		first = max(first, s)
	}
	return nil
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
	if !p.makeSegmentsAt(&at, runs, pos) {
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
