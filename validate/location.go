package validate

import (
	"amkc/ir"
	"amkc/validate/views"
)

// location is memory that tasks can conflict on: a page, or a buffer that is on none. Its addresses are bytes of one
// copy for a page, and row-major element numbers for a buffer, whose layout is injective. A location is cut into
// segments that no view cuts in two.
type location struct {
	bufs     []int32 // that tasks touch
	first    int32   // the first of all buffers there
	space    ir.Space
	words    bool // elements are exchange words
	paged    bool
	symbolic bool // some view depends on pos: symbolic.go proves it
	suspect  bool // the symbolic proof failed: positions are tried one by one
	bounds   []int
	base     int       // number of its first segment among those of all locations
	segs     []segment // between bounds
	cuts     cuts
}

func (l *location) onChip() bool { return l.space == ir.SMEM || l.space == ir.Register }

// access is one view of one task on a tracked location.
type access struct {
	task, buf, loc int32
	op, arg        int32 // which op of the task, which of its operands
	from, to       int32 // runs of the view; its group and its form when the location is symbolic
	write          bool
	symbolic       bool // the view depends on pos
}

// dims returns the ranges of the view.
func (a *access) dims(f *ir.Flat) []ir.Range {
	op := &f.Tasks[a.task].Ops[a.op]
	if a.write {
		return op.Out[a.arg].Dims
	}
	return op.In[a.arg].Dims
}

// findLocations maps buffers to locations and lists the accesses to them. Buffers that nobody may write are left out:
// views inside them are always in order.
func (p *Proof) findLocations() {
	f := p.flat
	p.locs = p.locs[:0]
	p.locOf = sized(p.locOf, len(f.Buffers))
	p.touched = sized(p.touched, len(f.Buffers))
	p.locOfPage = sized(p.locOfPage, len(f.Pages))
	for i := range f.Buffers {
		page := p.pageOf[i]
		switch {
		case f.Buffers[i].Kind.ReadOnly():
			p.locOf[i] = -1
		case page < 0:
			p.locOf[i] = p.newLocation(i)
		default:
			if p.locOfPage[page] == 0 {
				p.locOfPage[page] = p.newLocation(i) + 1
			}
			p.locOf[i] = p.locOfPage[page] - 1
		}
	}
	p.stats.Locations = len(p.locs)
	p.listAccesses()
	for i := range p.locs {
		l := &p.locs[i]
		if p.Full() {
			return
		}
		if l.symbolic && (l.words || l.space == ir.SMEM || l.space == ir.Register || len(l.bufs) > 1) {
			p.refuseSymbolic(l)
		}
	}
}

// newLocation adds the location of a buffer, in the memory of an earlier proof's.
func (p *Proof) newLocation(buf int) int32 {
	n := len(p.locs)
	if n < cap(p.locs) {
		p.locs = p.locs[:n+1]
	} else {
		p.locs = append(p.locs, location{})
	}
	b, old := &p.flat.Buffers[buf], &p.locs[n]
	*old = location{first: int32(buf), space: b.Space, words: b.Layout.Words(), paged: p.pageOf[buf] >= 0,
		bufs: old.bufs[:0], cuts: cuts{list: old.cuts.list[:0]}}
	return int32(n)
}

// where is the name of a location: of its page or its buffer.
func (p *Proof) where(l *location) string {
	if l.paged {
		return p.flat.Buffers[l.first].Pages[0]
	}
	return p.flat.Buffers[l.first].Name
}

func (p *Proof) listAccesses() {
	f := p.flat
	p.first = sized(p.first, len(f.Tasks)+1)
	p.accesses = p.accesses[:0]
	for t := range f.Tasks {
		if r := p.Root(t); r != t {
			p.repeatAccesses(int32(t), p.first[r], p.first[r+1])
		} else {
			p.taskAccesses(int32(t))
		}
		p.first[t+1] = int32(len(p.accesses))
		if len(p.accesses) > maxAccesses {
			p.spend(new(int), len(p.accesses), maxAccesses, "views of memory that tasks write", int32(t))
			break
		}
	}
	p.stats.Accesses = len(p.accesses)
}

func (p *Proof) taskAccesses(t int32) {
	task := &p.flat.Tasks[t]
	for k := range task.Ops {
		op := &task.Ops[k]
		for i, b := range op.InBuf {
			if b >= 0 && p.locOf[b] >= 0 {
				p.addAccess(access{task: t, buf: int32(b), op: int32(k), arg: int32(i),
					symbolic: p.varies(op.In[i].Dims)})
			}
		}
		for i, b := range op.OutBuf {
			if b >= 0 && p.locOf[b] >= 0 {
				p.addAccess(access{task: t, buf: int32(b), op: int32(k), arg: int32(i), write: true,
					symbolic: p.varies(op.Out[i].Dims)})
			}
		}
	}
}

// repeatAccesses adds those of a task whose body is that of an earlier one, with accesses [from, to).
func (p *Proof) repeatAccesses(t, from, to int32) {
	ops, n := p.flat.Tasks[t].Ops, len(p.accesses)
	p.accesses = append(p.accesses, p.accesses[from:to]...)
	for i := n; i < len(p.accesses); i++ {
		a := &p.accesses[i]
		bufs := ops[a.op].InBuf
		if a.write {
			bufs = ops[a.op].OutBuf
		}
		a.task, a.buf = t, int32(bufs[a.arg])
		p.place(a)
	}
}

func (p *Proof) addAccess(a access) {
	p.place(&a)
	p.accesses = append(p.accesses, a)
}

// place notes where an access is.
func (p *Proof) place(a *access) {
	a.loc = p.locOf[a.buf]
	l := &p.locs[a.loc]
	if !p.touched[a.buf] {
		p.touched[a.buf] = true
		l.bufs = append(l.bufs, a.buf)
	}
	l.symbolic = l.symbolic || a.symbolic
}

// varies reports whether a view depends on pos.
func (p *Proof) varies(dims []ir.Range) bool {
	if p.flat.Lo == p.flat.Hi {
		return false
	}
	for d := range dims {
		if !views.Constant(&dims[d]) {
			return true
		}
	}
	return false
}
