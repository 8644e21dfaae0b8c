package validate

import (
	"cmp"
	"slices"

	"amkc/ir"
)

// Locations with views that depend on pos are proved for all positions at once, view against view: two conflicting
// views must be ordered by hb, or be apart in some dimension at every position; a read must be initial state, or lie
// inside one earlier write, at every position. That is sufficient, not necessary: where it fails, positions.go
// decides.

// refuseSymbolic reports a view that depends on pos where none may.
func (p *proof) refuseSymbolic(l *location) {
	for i := range p.accesses {
		a := &p.accesses[i]
		if &p.locs[a.loc] != l || !slices.ContainsFunc(a.dims(p.flat), func(r ir.Range) bool { return !constant(&r) }) {
			continue
		}
		what := "exchange words, which are the same ones at every position"
		switch {
		case l.space == ir.SMEM || l.space == ir.Register:
			what = "on-chip memory, which has the same owner at every position"
		case !l.words:
			what = "memory that several buffers share"
		}
		d := p.errorf(CodeSymbolic, p.task(a.task), "%s %s, a view that depends on pos, of %s", does(a), p.view(a),
			what)
		d.Buffer = p.flat.Buffers[a.buf].Name
		d.Suggest("use constant bounds")
		return
	}
}

// groupViews sorts the views of symbolic locations into groups that share no element, by the dimensions in which no
// view depends on pos (the heads of a cache) or all views are parts of one dealing (its splits), so that few pairs
// are left to compare.
func (p *proof) groupViews() {
	p.groups = p.groups[:0]
	if p.listSymbolic(); len(p.byLocation.items) == 0 {
		return
	}
	p.formViews()
	p.earlier = sized(p.earlier, len(p.accesses))
	p.groupBase = sized(p.groupBase, len(p.locs))
	for i := range p.locs {
		if views := p.byLocation.of(i); len(views) > 0 && !p.groupAlike(i, views) {
			p.groupLocation(i, views)
		}
	}
}

// groupAlike takes the groups of an earlier location if all views are those of its tasks' bodies there. That location
// may have more views and so fewer groups, which is no less right.
func (p *proof) groupAlike(loc int, views []int32) bool {
	first := p.sameAccess(views[0])
	if first == nil || int(first.loc) >= loc || !p.locs[first.loc].symbolic {
		return false
	}
	for _, v := range views {
		if like := p.sameAccess(v); like == nil || like.loc != first.loc {
			return false
		}
	}
	from, base := p.groupBase[first.loc], int32(len(p.groups))
	p.groupBase[loc] = base
	for _, v := range views {
		g := p.sameAccess(v).from - from + base
		for int(g) >= len(p.groups) {
			p.groups = append(p.groups, -1)
		}
		p.accesses[v].from = g
	}
	return true
}

func (p *proof) groupLocation(loc int, views []int32) {
	groups := map[groupKey]int32{}
	p.keys = sized(p.keys, len(views))
	for d := range p.accesses[views[0]].dims(p.flat) {
		if !p.components(views, d) {
			p.parts(views, d)
		}
	}
	p.groupBase[loc] = int32(len(p.groups))
	for k, v := range views {
		g, ok := groups[p.keys[k]]
		if !ok {
			g = int32(len(p.groups))
			groups[p.keys[k]] = g
			p.groups = append(p.groups, -1)
		}
		p.accesses[v].from = g
	}
}

// groupKey says for each dimension which component or part a view is in.
type groupKey [4]int32

// listSymbolic lists the views of each symbolic location.
func (p *proof) listSymbolic() {
	p.byLocation.begin(len(p.locs))
	views := p.earlier[:0] // which is not in use yet
	for i := range p.accesses {
		if l := p.accesses[i].loc; p.locs[l].symbolic {
			views = append(views, int32(i))
			p.byLocation.count(int(l))
		}
	}
	p.byLocation.turn()
	for _, v := range views {
		p.byLocation.put(int(p.accesses[v].loc), int(v))
	}
	p.earlier = views
}

// components numbers the views by connected overlap in dimension d, if none depends on pos there.
func (p *proof) components(views []int32, d int) bool {
	spans := p.intervals[:0]
	for _, v := range views {
		s, ok := ends(&p.accesses[v].dims(p.flat)[d])
		if !ok {
			return false
		}
		spans = append(spans, s)
	}
	p.intervals = spans
	starts := pieces(spans)
	for k, v := range views {
		s, _ := ends(&p.accesses[v].dims(p.flat)[d])
		p.keys[k][d] = pieceOf(s, starts)
	}
	return true
}

// ends returns the ends of a range, if they do not depend on pos.
func ends(r *ir.Range) (run, bool) {
	lo, ok1 := r.Lo.IsConst()
	hi, ok2 := r.Hi.IsConst()
	return run{lo, max(lo, hi)}, ok1 && ok2
}

// pieces returns where the connected pieces begin that intervals cover, in ascending order. It changes the list.
func pieces(spans []run) []int {
	slices.SortFunc(spans, func(a, b run) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
	starts, end := []int{spans[0].lo}, spans[0].hi
	for _, s := range spans[1:] {
		if s.lo >= end && s.lo > starts[len(starts)-1] {
			starts = append(starts, s.lo)
		}
		end = max(end, s.hi)
	}
	return starts
}

// pieceOf returns the number of the piece that an interval lies in, counted from 1.
func pieceOf(s run, starts []int) int32 {
	k, _ := slices.BinarySearch(starts, s.lo+1)
	return int32(k)
}

// parts numbers the views by the part they take of dimension d, if all take constant parts of one dealing.
func (p *proof) parts(views []int32, d int) {
	first := &p.accesses[views[0]].dims(p.flat)[d]
	for _, v := range views {
		r := &p.accesses[v].dims(p.flat)[d]
		if _, ok := r.Part.IsConst(); !ok || !r.Shared() || r.Block != first.Block || r.Parts != first.Parts {
			return
		}
	}
	for k, v := range views {
		part, _ := p.accesses[v].dims(p.flat)[d].Part.IsConst()
		p.keys[k][d] = int32(part)
	}
}

// symbolic compares the k-th access with the earlier ones of its group.
func (s *sweep) symbolic(l *location, k int32) {
	p := s.p
	if p.clock.weak {
		p.clock.keep(s.task, s.hb)
	}
	a := &p.accesses[k]
	b, dims := &p.flat.Buffers[a.buf], p.formOf(a)
	defined := a.write || p.oldRows(b, dims) || empty(dims)
	pairs := 1
	for i := p.groups[a.from]; i >= 0; i = p.earlier[i] {
		e := &p.accesses[i]
		pairs++
		ordered := e.task == s.task || p.clock.before(e.task, s.hb)
		if !ordered && (e.write || a.write) && !disjoint(p.formOf(e), dims) {
			l.suspect = true
		}
		if !defined && ordered && e.write && inside(dims, p.formOf(e)) {
			defined = true
		}
	}
	l.suspect = l.suspect || !defined || b.Kind == ir.Output
	p.groups[a.from], p.earlier[k] = k, p.groups[a.from]
	p.spend(&p.work.pairs, pairs, maxPairs, "pairs of views that depend on pos", s.task)
}

// formOf returns the form of an access to a symbolic location.
func (p *proof) formOf(a *access) []form {
	return p.forms[a.to : int(a.to)+len(p.flat.Buffers[a.buf].Shape)]
}

// formViews brings the views of symbolic locations into the form in which they are compared. Those of tasks of one
// body have one.
func (p *proof) formViews() {
	p.forms = p.forms[:0]
	for i := range p.accesses {
		a := &p.accesses[i]
		if !p.locs[a.loc].symbolic {
			continue
		}
		if like := p.sameAccess(int32(i)); like != nil && p.locs[like.loc].symbolic {
			a.to = like.to
			continue
		}
		a.to = int32(len(p.forms))
		p.forms = p.form(p.forms, a.dims(p.flat))
	}
}

// oldRows reports whether a view of a cache covers rows below pos alone, at every position.
func (p *proof) oldRows(b *ir.Buffer, dims []form) bool {
	return b.Kind == ir.KVCache && dims[rowsDim(b)].hi.atMost(bound{lo: p.flat.Lo, hi: p.flat.Hi})
}
