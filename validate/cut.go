package validate

import (
	"slices"

	"amkc/ir"
	"amkc/validate/views"
)

// run is a contiguous piece of a view: addresses [lo, hi), and after the location is cut, segments [lo, hi).
type run struct{ lo, hi int }

// cutLocations expands every view that does not depend on pos into runs, and cuts the locations at their ends.
func (p *Proof) cutLocations() {
	p.groupViews()
	if !p.expandViews() {
		return
	}
	p.bounds = p.bounds[:0]
	segments := 0
	for i := range p.locs {
		l := &p.locs[i]
		if l.symbolic {
			continue
		}
		if !p.initialRows(l, p.flat.Lo, &l.cuts) {
			return
		}
		from := len(p.bounds)
		p.bounds = l.cuts.appendBounds(p.bounds)
		l.bounds = p.bounds[from:len(p.bounds):len(p.bounds)]
		l.base = segments
		segments += max(0, len(l.bounds)-1)
	}
	p.stats.Segments += segments
	p.segs = newSegments(p.segs, segments)
	for i := range p.locs {
		if l := &p.locs[i]; !l.symbolic {
			l.segs = p.segs[l.base : l.base+max(0, len(l.bounds)-1)]
		}
	}
	p.numberRuns()
}

// expandViews lists the addresses of every view that does not depend on pos, once for tasks of one body, and notes
// where they cut their location.
func (p *Proof) expandViews() bool {
	p.sizeCuts()
	p.spans = p.spans[:0]
	for i := range p.accesses {
		a := &p.accesses[i]
		l := &p.locs[a.loc]
		if l.symbolic {
			continue
		}
		if like := p.sameAccess(int32(i)); like != nil && !p.locs[like.loc].symbolic {
			a.from, a.to = like.from, like.to
			if !p.spend(&p.work.runs, int(a.to-a.from), maxRuns, "contiguous pieces of views", a.task) {
				return false
			}
			if a.loc == like.loc {
				continue // cut there already
			}
		} else {
			runs := p.x[0].expand(&p.flat.Buffers[a.buf], a.dims(p.flat), p.flat.Lo, l.paged)
			if !p.spend(&p.work.runs, len(runs)+p.x[0].dropped, maxRuns, "contiguous pieces of views", a.task) {
				return false
			}
			a.from = int32(len(p.spans))
			p.spans = append(p.spans, runs...)
			a.to = int32(len(p.spans))
		}
		l.cuts.reserve(int(a.to - a.from))
		for _, r := range p.spans[a.from:a.to] {
			l.cuts.add(r)
		}
	}
	return true
}

// sameAccess returns the access of the same view by the root of its task's body, or nil.
func (p *Proof) sameAccess(i int32) *access {
	t := p.accesses[i].task
	if r := p.Root(int(t)); r != int(t) {
		return &p.accesses[p.first[r]+i-p.first[t]]
	}
	return nil
}

// numberRuns turns addresses into segment numbers. Views of one body and location share theirs.
func (p *Proof) numberRuns() {
	p.runs = append(p.runs[:0], p.spans...)
	for i := range p.accesses {
		a := &p.accesses[i]
		l := &p.locs[a.loc]
		if l.symbolic {
			continue
		}
		like := p.sameAccess(int32(i))
		switch {
		case like == nil || p.locs[like.loc].symbolic:
			after := run{}
			for k := a.from; k < a.to; k++ {
				after = l.segments(p.spans[k], after.hi)
				p.runs[k] = after
			}
		case like.loc != a.loc:
			from, after := int32(len(p.runs)), run{}
			for _, r := range p.spans[a.from:a.to] {
				after = l.segments(r, after.hi)
				p.runs = append(p.runs, after)
			}
			a.from, a.to = from, int32(len(p.runs))
		}
	}
}

// initialRows cuts a cache where its initial rows end, so that every segment is defined or not as a whole.
func (p *Proof) initialRows(l *location, pos int, c *cuts) bool {
	for _, k := range l.bufs {
		b := &p.flat.Buffers[k]
		if b.Kind != ir.KVCache {
			continue
		}
		d := views.RowsDim(b)
		row, heads := product(b.Shape[d+1:]), product(b.Shape[:d])
		if !p.spend(&p.work.runs, heads, maxRuns, "contiguous pieces of views", noTask) {
			return false
		}
		for h := range heads {
			end := (h*b.Shape[d] + min(pos, b.Shape[d])) * row
			c.add(run{end, end})
		}
	}
	return true
}

// cut makes the segments of a location that is looked at by itself, at one position.
func (p *Proof) cut(l *location, runs []run, pos int) bool {
	l.cuts = cuts{}
	for _, r := range runs {
		l.cuts.add(r)
	}
	if !p.initialRows(l, pos, &l.cuts) {
		return false
	}
	l.bounds = l.cuts.appendBounds(nil)
	l.segs = newSegments(nil, max(0, len(l.bounds)-1))
	p.stats.Segments += len(l.segs)
	return true
}

// newSegments returns n segments that nobody has touched, in the memory of old ones.
func newSegments(old []segment, n int) []segment {
	segs := slices.Grow(old[:0], n)[:n]
	for i := range segs {
		segs[i] = segment{writer: -1, audience: -1}
	}
	return segs
}

// segments turns addresses into segment numbers. The runs of a view are ascending: from is where the one before
// ended, 0 for the first.
func (l *location) segments(r run, from int) run {
	if l.cuts.set != nil {
		return run{l.cuts.rank(r.lo), l.cuts.rank(r.hi)}
	}
	lo, hi := from, len(l.bounds)-1
	if l.bounds[lo] != r.lo {
		lo = l.find(r.lo, from)
	}
	if l.bounds[hi] != r.hi {
		hi = l.find(r.hi, lo)
	}
	return run{lo, hi}
}

// find returns the number of a bound that is not before from, looking near by first.
func (l *location) find(addr, from int) int {
	step := 1
	for from+step < len(l.bounds) && l.bounds[from+step] < addr {
		from, step = from+step, 2*step
	}
	k, _ := slices.BinarySearch(l.bounds[from:min(from+step+1, len(l.bounds))], addr)
	return from + k
}

func product(ns []int) int {
	n := 1
	for _, k := range ns {
		n *= k
	}
	return n
}
