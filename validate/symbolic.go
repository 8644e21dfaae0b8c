package validate

import (
	"cmp"
	"slices"

	"amkc/ir"
)

// Locations with views that depend on pos are proved for all positions at once, view against view: two conflicting views
// must be ordered by hb, or be apart in some dimension at every position; a read must be initial state, or lie inside one
// earlier write, at every position. That is sufficient, not necessary: where it fails, positions.go decides.

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
		d := p.errorf(CodeSymbolic, p.task(a.task), "%s %s, a view that depends on pos, of %s", does(a), p.view(a), what)
		d.Buffer = p.flat.Buffers[a.buf].Name
		d.Suggest("use constant bounds")
		return
	}
}

// groupViews sorts the views of symbolic locations into groups that share no element, by the dimensions in which no view
// depends on pos (the heads of a cache) or all views are parts of one dealing (its splits), so that few pairs are left to
// compare.
func (p *proof) groupViews() {
	p.groups = p.groups[:0]
	if p.listSymbolic(); len(p.byLocation.items) == 0 {
		return
	}
	p.earlier = sized(p.earlier, len(p.accesses))
	p.groupBase = sized(p.groupBase, len(p.locs))
	for i := range p.locs {
		if views := p.byLocation.of(i); len(views) > 0 && !p.groupAlike(i, views) {
			p.groupLocation(i, views)
		}
	}
}

// groupAlike takes the groups of an earlier location if all views are those of its tasks' bodies there. That location may
// have more views and so fewer groups, which is no less right.
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
	for i := range p.accesses {
		if l := p.accesses[i].loc; p.locs[l].symbolic {
			p.byLocation.count(int(l))
		}
	}
	p.byLocation.turn()
	for i := range p.accesses {
		if l := p.accesses[i].loc; p.locs[l].symbolic {
			p.byLocation.put(int(l), i)
		}
	}
}

// spanOf is an interval of one dimension, of the k-th view.
type spanOf struct{ lo, hi, k int }

// components numbers the views by connected overlap in dimension d, if none depends on pos there.
func (p *proof) components(views []int32, d int) bool {
	spans := p.intervals[:0]
	for k, v := range views {
		r := &p.accesses[v].dims(p.flat)[d]
		lo, ok1 := r.Lo.IsConst()
		hi, ok2 := r.Hi.IsConst()
		if !ok1 || !ok2 {
			return false
		}
		spans = append(spans, spanOf{lo, max(lo, hi), k})
	}
	p.intervals = spans
	slices.SortFunc(spans, func(a, b spanOf) int { return cmp.Compare(a.lo, b.lo) })
	component, end := int32(0), spans[0].lo
	for _, s := range spans {
		if s.lo >= end {
			component++
		}
		end = max(end, s.hi)
		p.keys[s.k][d] = component
	}
	return true
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

// symbolic compares a view with the earlier ones of its group.
func (s *sweep) symbolic(l *location, a *access) {
	p := s.p
	if p.clock.weak {
		p.clock.keep(s.task, s.hb)
	}
	b, dims := &p.flat.Buffers[a.buf], a.dims(p.flat)
	defined := a.write || p.oldRows(b, dims) || p.empty(dims)
	pairs := 1
	for k := p.groups[a.from]; k >= 0; k = p.earlier[k] {
		e := &p.accesses[k]
		pairs++
		ordered := e.task == s.task || p.clock.before(e.task, s.hb)
		if !ordered && (e.write || a.write) && !p.disjoint(e.dims(p.flat), dims) {
			l.suspect = true
		}
		if !defined && ordered && e.write && p.inside(dims, e.dims(p.flat)) {
			defined = true
		}
	}
	l.suspect = l.suspect || !defined || b.Kind == ir.Output
	i := int32(a.index(p))
	p.groups[a.from], p.earlier[i] = i, p.groups[a.from]
	p.spend(&p.work.pairs, pairs, maxPairs, "pairs of views that depend on pos", s.task)
}

// index is the place of an access in the list.
func (a *access) index(p *proof) int {
	for i := p.first[a.task]; i < p.first[a.task+1]; i++ {
		if &p.accesses[i] == a {
			return int(i)
		}
	}
	return 0
}

// atMost reports whether e <= f at every position, if both are affine (or the same).
func (p *proof) atMost(e, f ir.Expr) bool {
	if m, ok := e.IsConst(); ok {
		if n, ok := f.IsConst(); ok {
			return m <= n
		}
	}
	_, _, ok1 := e.Affine()
	_, _, ok2 := f.Affine()
	if !ok1 || !ok2 {
		return e.Equal(f)
	}
	return e.At(p.flat.Lo) <= f.At(p.flat.Lo) && e.At(p.flat.Hi) <= f.At(p.flat.Hi)
}

// disjoint reports whether two views of one buffer are apart in one dimension at every position.
func (p *proof) disjoint(a, b []ir.Range) bool {
	for d := range a {
		r, s := &a[d], &b[d]
		if p.atMost(r.Hi, s.Lo) || p.atMost(s.Hi, r.Lo) || p.atMost(r.Hi, r.Lo) || p.atMost(s.Hi, s.Lo) {
			return true
		}
		if r.Shared() && s.Shared() && r.Block == s.Block && r.Parts == s.Parts {
			m, ok1 := r.Part.IsConst()
			n, ok2 := s.Part.IsConst()
			if ok1 && ok2 && m != n {
				return true
			}
		}
	}
	return false
}

// inside reports whether view a lies inside view b at every position.
func (p *proof) inside(a, b []ir.Range) bool {
	for d := range a {
		r, s := &a[d], &b[d]
		if sameRange(r, s) {
			continue
		}
		if s.Shared() && !(r.Shared() && r.Block == s.Block && r.Parts == s.Parts && r.Part.Equal(s.Part)) || !p.atMost(s.Lo, r.Lo) || !p.atMost(r.Hi, s.Hi) {
			return false
		}
	}
	return true
}

// empty reports whether a view is empty at every position.
func (p *proof) empty(dims []ir.Range) bool {
	for d := range dims {
		if p.atMost(dims[d].Hi, dims[d].Lo) {
			return true
		}
	}
	return false
}

// oldRows reports whether a view of a cache covers rows below pos alone, at every position.
func (p *proof) oldRows(b *ir.Buffer, dims []ir.Range) bool {
	return b.Kind == ir.KVCache && p.atMost(dims[rowsDim(b)].Hi, ir.Symbol(ir.Pos))
}
