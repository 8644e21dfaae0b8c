package validate

import (
	"slices"

	"amkc/ir"
	"amkc/validate/views"
)

// Locations with views that depend on pos are proved for all positions at once, view against view: two conflicting
// views must be ordered by hb, or be apart in some dimension at every position; a read must be initial state, or lie
// inside one earlier write, at every position. That is sufficient, not necessary: where it fails, positions.go
// decides.

// refuseSymbolic reports a view that depends on pos where none may.
func (p *Proof) refuseSymbolic(l *location) {
	for i := range p.accesses {
		a := &p.accesses[i]
		if &p.locs[a.loc] != l || !slices.ContainsFunc(a.dims(p.flat), func(r ir.Range) bool { return !views.Constant(&r) }) {
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
	p.groups = p.groups[:0]
	if p.listSymbolic(); len(p.byLocation.items) == 0 {
		return
	}
	p.formViews()
	p.earlier = sized(p.earlier, len(p.accesses))
	p.groupBase = sized(p.groupBase, len(p.locs))
	for i := range p.locs {
		if list := p.byLocation.of(i); len(list) > 0 && !p.groupAlike(i, list) {
			p.groupLocation(i, list)
		}
	}
}

// groupAlike takes the groups of an earlier location if all views are those of its tasks' bodies there. That location
// may have more views and so fewer groups, which is no less right.
func (p *Proof) groupAlike(loc int, list []int32) bool {
	first := p.sameAccess(list[0])
	if first == nil || int(first.loc) >= loc || !p.locs[first.loc].symbolic {
		return false
	}
	for _, v := range list {
		if like := p.sameAccess(v); like == nil || like.loc != first.loc {
			return false
		}
	}
	from, base := p.groupBase[first.loc], int32(len(p.groups))
	p.groupBase[loc] = base
	for _, v := range list {
		g := p.sameAccess(v).from - from + base
		for int(g) >= len(p.groups) {
			p.groups = append(p.groups, -1)
		}
		p.accesses[v].from = g
	}
	return true
}

func (p *Proof) groupLocation(loc int, list []int32) {
	groups := map[views.Key]int32{}
	p.keys = sized(p.keys, len(list))
	for d := range p.accesses[list[0]].dims(p.flat) {
		if !p.components(list, d) {
			p.parts(list, d)
		}
	}
	p.groupBase[loc] = int32(len(p.groups))
	for k, v := range list {
		g, ok := groups[p.keys[k]]
		if !ok {
			g = int32(len(p.groups))
			groups[p.keys[k]] = g
			p.groups = append(p.groups, -1)
		}
		p.accesses[v].from = g
	}
}

// listSymbolic lists the views of each symbolic location.
func (p *Proof) listSymbolic() {
	p.byLocation.begin(len(p.locs))
	list := p.earlier[:0] // which is not in use yet
	for i := range p.accesses {
		if l := p.accesses[i].loc; p.locs[l].symbolic {
			list = append(list, int32(i))
			p.byLocation.count(int(l))
		}
	}
	p.byLocation.turn()
	for _, v := range list {
		p.byLocation.put(int(p.accesses[v].loc), int(v))
	}
	p.earlier = list
}

// components numbers the views by connected overlap in dimension d, if none depends on pos there.
func (p *Proof) components(list []int32, d int) bool {
	spans := p.intervals[:0]
	for _, v := range list {
		s, ok := views.Ends(&p.accesses[v].dims(p.flat)[d])
		if !ok {
			return false
		}
		spans = append(spans, s)
	}
	p.intervals = spans
	starts := views.Pieces(spans)
	for k, v := range list {
		s, _ := views.Ends(&p.accesses[v].dims(p.flat)[d])
		p.keys[k][d] = views.PieceOf(s, starts)
	}
	return true
}

// parts numbers the views by the part they take of dimension d, if all take constant parts of one dealing.
func (p *Proof) parts(list []int32, d int) {
	first := &p.accesses[list[0]].dims(p.flat)[d]
	for _, v := range list {
		r := &p.accesses[v].dims(p.flat)[d]
		if _, ok := r.Part.IsConst(); !ok || !r.Shared() || r.Block != first.Block || r.Parts != first.Parts {
			return
		}
	}
	for k, v := range list {
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
	defined := a.write || p.oldRows(b, dims) || views.Empty(dims)
	pairs := 1
	for i := p.groups[a.from]; i >= 0; i = p.earlier[i] {
		e := &p.accesses[i]
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
	p.groups[a.from], p.earlier[k] = k, p.groups[a.from]
	p.spend(&p.work.pairs, pairs, maxPairs, "pairs of views that depend on pos", s.task)
}

// formOf returns the form of an access to a symbolic location.
func (p *Proof) formOf(a *access) []views.Range {
	return p.forms[a.to : int(a.to)+len(p.flat.Buffers[a.buf].Shape)]
}

// formViews brings the views of symbolic locations into the form in which they are compared. Those of tasks of one
// body have one.
func (p *Proof) formViews() {
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
		p.forms = p.positions.Append(p.forms, a.dims(p.flat))
	}
}

// oldRows reports whether a view of a cache covers rows below pos alone, at every position.
func (p *Proof) oldRows(b *ir.Buffer, dims []views.Range) bool {
	return b.Kind == ir.KVCache && dims[views.RowsDim(b)].Hi.AtMost(views.Between(p.flat.Lo, p.flat.Hi))
}
