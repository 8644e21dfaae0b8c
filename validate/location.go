package validate

import (
	"slices"

	"amkc/ir"
)

// location is memory that tasks can conflict on: a page, or a buffer that is on none. Its addresses are bytes of one copy
// for a page, and row-major element numbers for a buffer, whose layout is injective. A location is cut into segments
// that no view cuts in two.
type location struct {
	name     string
	bufs     []int32 // that tasks touch
	space    ir.Space
	words    bool // elements are exchange words
	paged    bool
	symbolic bool // some view depends on pos: symbolic.go proves it
	suspect  bool // the symbolic proof failed: positions are tried one by one
	bounds   []int
	segs     []segment
	groups   [][]int32 // symbolic locations: accesses so far, by group, in execution order
}

// segment is what the sweep in execution order knows about a piece of a location.
type segment struct {
	writer  int32 // last writer, -1 for none
	buf     int32 // through which buffer it wrote
	owner   int32 // on-chip: the only SM (task, for registers) that touched it, plus 1; 0 for none
	readers readers
}

// access is one view of one task on a tracked location.
type access struct {
	task, buf, loc int32
	op, arg        int32 // which op of the task, which of its operands
	from, to       int32 // runs of the view; from is its group when the location is symbolic
	write          bool
}

// dims returns the ranges of the view.
func (a *access) dims(f *ir.Flat) []ir.Range {
	op := &f.Tasks[a.task].Ops[a.op]
	if a.write {
		return op.Out[a.arg].Dims
	}
	return op.In[a.arg].Dims
}

// run is a contiguous piece of a view: addresses [lo, hi), and after the location is cut, segments [lo, hi).
type run struct{ lo, hi int }

// findLocations maps buffers to locations and lists the accesses to them. Buffers that nobody may write are left out:
// views inside them are always in order.
func (p *proof) findLocations() {
	f := p.flat
	p.locOf = make([]int32, len(f.Buffers))
	pages := map[string]int32{}
	for i := range f.Buffers {
		b := &f.Buffers[i]
		p.locOf[i] = -1
		switch {
		case b.Kind.ReadOnly():
		case len(b.Pages) == 1:
			at, ok := pages[b.Pages[0]]
			if !ok {
				at = p.newLocation(b, b.Pages[0])
				p.locs[at].paged = true
				pages[b.Pages[0]] = at
			}
			p.locOf[i] = at
		default:
			p.locOf[i] = p.newLocation(b, b.Name)
		}
	}
	p.stats.Locations = len(p.locs)
	p.listAccesses()
	for i := range p.locs {
		l := &p.locs[i]
		if l.symbolic && (l.words || l.space == ir.SMEM || l.space == ir.Register || len(l.bufs) > 1) {
			p.refuseSymbolic(l)
		}
	}
}

func (p *proof) newLocation(b *ir.Buffer, name string) int32 {
	p.locs = append(p.locs, location{name: name, space: b.Space, words: b.Layout.Words()})
	return int32(len(p.locs) - 1)
}

func (p *proof) listAccesses() {
	f := p.flat
	p.first = make([]int32, len(f.Tasks)+1)
	p.accesses = make([]access, 0, 4*len(f.Tasks))
	for t := range f.Tasks {
		task := &f.Tasks[t]
		for k := range task.Ops {
			op := &task.Ops[k]
			for i, b := range op.InBuf {
				p.addAccess(access{task: int32(t), buf: int32(b), op: int32(k), arg: int32(i)})
			}
			for i, b := range op.OutBuf {
				p.addAccess(access{task: int32(t), buf: int32(b), op: int32(k), arg: int32(i), write: true})
			}
		}
		p.first[t+1] = int32(len(p.accesses))
	}
	p.stats.Accesses = len(p.accesses)
}

func (p *proof) addAccess(a access) {
	if a.buf < 0 || p.locOf[a.buf] < 0 {
		return
	}
	a.loc = p.locOf[a.buf]
	l := &p.locs[a.loc]
	if !slices.Contains(l.bufs, a.buf) {
		l.bufs = append(l.bufs, a.buf)
	}
	if !l.symbolic && p.flat.Lo != p.flat.Hi {
		dims := a.dims(p.flat)
		for d := range dims {
			l.symbolic = l.symbolic || !constant(&dims[d])
		}
	}
	p.accesses = append(p.accesses, a)
}

// constant reports whether a range is the same at every position.
func constant(r *ir.Range) bool {
	_, ok1 := r.Lo.IsConst()
	_, ok2 := r.Hi.IsConst()
	if !ok1 || !ok2 {
		return false
	}
	_, ok3 := r.Part.IsConst()
	return ok3 || !r.Shared()
}

// cutLocations expands every view that does not depend on pos into runs, and cuts the locations at their ends.
func (p *proof) cutLocations() {
	p.groupViews()
	cuts := make([][]int, len(p.locs))
	p.runs = make([]run, 0, len(p.accesses))
	var x expander
	for i := range p.accesses {
		a := &p.accesses[i]
		l := &p.locs[a.loc]
		if l.symbolic {
			continue
		}
		runs := x.expand(&p.flat.Buffers[a.buf], a.dims(p.flat), p.flat.Lo, l.paged)
		if !p.spend(&p.work.runs, len(runs)+x.dropped, maxRuns, "contiguous pieces of views", a.task) {
			return
		}
		a.from = int32(len(p.runs))
		p.runs = append(p.runs, runs...)
		a.to = int32(len(p.runs))
		for _, r := range runs {
			if c := cuts[a.loc]; len(c) < 2 || c[len(c)-2] != r.lo || c[len(c)-1] != r.hi { // often as before: all of it
				cuts[a.loc] = append(c, r.lo, r.hi)
			}
		}
	}
	for i := range p.locs {
		if l := &p.locs[i]; !l.symbolic {
			p.cut(l, cuts[i], p.flat.Lo)
		}
	}
	for i := range p.accesses {
		a := &p.accesses[i]
		if l := &p.locs[a.loc]; !l.symbolic {
			for k := a.from; k < a.to; k++ {
				p.runs[k] = l.segments(p.runs[k])
			}
		}
	}
}

// cut makes the segments of a location from the ends of its runs. A cache is also cut where its initial rows end, and an
// output at its own ends, so that every segment is defined or not as a whole and gaps show.
func (p *proof) cut(l *location, cuts []int, pos int) {
	for _, k := range l.bufs {
		b := &p.flat.Buffers[k]
		if b.Kind != ir.KVCache {
			continue
		}
		d := rowsDim(b)
		row, heads := product(b.Shape[d+1:]), product(b.Shape[:d])
		if !p.spend(&p.work.runs, heads, maxRuns, "contiguous pieces of views", noTask) {
			return
		}
		for h := range heads {
			cuts = append(cuts, (h*b.Shape[d]+min(pos, b.Shape[d]))*row)
		}
	}
	slices.Sort(cuts)
	l.bounds = slices.Compact(cuts)
	l.segs = make([]segment, max(0, len(l.bounds)-1))
	for i := range l.segs {
		l.segs[i].writer = -1
	}
	p.stats.Segments += len(l.segs)
}

// segments turns addresses into segment numbers.
func (l *location) segments(r run) run {
	lo, hi := 0, len(l.bounds)-1
	if l.bounds[lo] != r.lo {
		lo, _ = slices.BinarySearch(l.bounds, r.lo)
	}
	if l.bounds[hi] != r.hi {
		hi, _ = slices.BinarySearch(l.bounds, r.hi)
	}
	return run{lo, hi}
}

func product(ns []int) int {
	n := 1
	for _, k := range ns {
		n *= k
	}
	return n
}
