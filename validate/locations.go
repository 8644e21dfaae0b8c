package validate

import (
	"slices"

	"amkc/ir"
	"amkc/validate/views"
)

// location is memory that tasks can conflict on: a page, or a buffer that is on none. Its addresses are bytes of one
// copy for a page, and row-major element numbers for a buffer, whose layout is injective. A location is cut into
// segments that no view cuts in two.
type location struct {
	bufs       []int32 // that tasks touch
	first      int32   // the first of all buffers there
	space      ir.Space
	words      bool // elements are exchange words
	pushed     bool // by all ranks, to all
	copies     copies
	paged      bool
	symbolic   bool // some view depends on pos: symbolic.go proves it
	suspect    bool // the symbolic proof failed: positions are tried one by one
	bounds     []int
	base       int       // number of its first segment among those of all locations
	segs       []segment // between bounds
	boundaries boundaries
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

// memoryMap says which memory each view touches.
type memoryMap struct {
	pageOf    []int32 // the page of each buffer, -1 for none
	locs      []location
	locOf     []int32  // location of each buffer; -1 when no task may write it, so that nothing can conflict
	locOfPage []int32  // of each page, plus 1
	touched   []bool   // for each buffer: some task has a view of it
	accesses  []access // of tracked locations, in task order, reads of an op before its writes
	first     []int32  // accesses of task t are [first[t], first[t+1])
	expanders [2]expander
}

// findLocations maps buffers to locations and lists the accesses to them. Buffers that nobody may write are left out:
// views inside them are always in order.
func (p *Proof) findLocations() {
	f := p.flat
	p.mem.locs = p.mem.locs[:0]
	p.mem.locOf = sized(p.mem.locOf, len(f.Buffers))
	p.mem.touched = sized(p.mem.touched, len(f.Buffers))
	p.mem.locOfPage = sized(p.mem.locOfPage, len(f.Pages))
	for i := range f.Buffers {
		page := p.mem.pageOf[i]
		switch {
		case f.Buffers[i].Kind.ReadOnly():
			p.mem.locOf[i] = -1
		case page < 0:
			p.mem.locOf[i] = p.mem.add(f, i)
		default:
			if p.mem.locOfPage[page] == 0 {
				p.mem.locOfPage[page] = p.mem.add(f, i) + 1
			}
			p.mem.locOf[i] = p.mem.locOfPage[page] - 1
		}
	}
	p.stats.Locations = len(p.mem.locs)
	p.listAccesses()
	p.notePolledCopies()
	for i := range p.mem.locs {
		l := &p.mem.locs[i]
		if p.Full() {
			return
		}
		if l.symbolic && (l.words || l.space == ir.SMEM || l.space == ir.Register || len(l.bufs) > 1) {
			p.refuseSymbolic(l)
		}
	}
}

// add adds the location of a buffer, in the memory of an earlier proof's.
func (m *memoryMap) add(f *ir.Flat, buf int) int32 {
	n := len(m.locs)
	if n < cap(m.locs) {
		m.locs = m.locs[:n+1]
	} else {
		m.locs = append(m.locs, location{})
	}
	b, old := &f.Buffers[buf], &m.locs[n]
	*old = location{first: int32(buf), space: b.Space, words: b.Layout.Words(),
		pushed: f.Peers > 0 && b.Space == ir.PeerScratch,
		copies: copies{count: f.Copies(b), flat: f, buf: b}, paged: m.pageOf[buf] >= 0,
		bufs: old.bufs[:0], boundaries: boundaries{list: old.boundaries.list[:0]}}
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
	p.mem.first = sized(p.mem.first, len(f.Tasks)+1)
	p.mem.accesses = p.mem.accesses[:0]
	for t := range f.Tasks {
		if r := p.Root(t); r != t {
			p.repeatAccesses(int32(t), p.mem.first[r], p.mem.first[r+1])
		} else {
			p.taskAccesses(int32(t))
		}
		p.mem.first[t+1] = int32(len(p.mem.accesses))
		if len(p.mem.accesses) > maxAccesses && !p.spend(new(int), len(p.mem.accesses), maxAccesses,
			"views of memory that tasks write", int32(t)) {
			break
		}
	}
	p.stats.Accesses = len(p.mem.accesses)
}

func (p *Proof) taskAccesses(t int32) {
	task := &p.flat.Tasks[t]
	for k := range task.Ops {
		op := &task.Ops[k]
		for i, b := range op.InBuf {
			if b >= 0 && p.tracks(task, b) {
				p.mem.addAccess(access{task: t, buf: int32(b), op: int32(k), arg: int32(i),
					symbolic: p.varies(op.In[i].Dims)})
			}
		}
		for i, b := range op.OutBuf {
			if b >= 0 && p.tracks(task, b) {
				p.mem.addAccess(access{task: t, buf: int32(b), op: int32(k), arg: int32(i), write: true,
					symbolic: p.varies(op.Out[i].Dims)})
			}
		}
	}
}

// tracks reports whether views of a buffer by a task can conflict with others on the first rank: a peer reaches what it
// pushes there alone.
func (p *Proof) tracks(t *ir.Task, buf int) bool {
	l := p.mem.locOf[buf]
	return l >= 0 && (t.Rank == 0 || p.mem.locs[l].pushed)
}

// repeatAccesses adds those of a task whose body is that of an earlier one, with accesses [from, to).
func (p *Proof) repeatAccesses(t, from, to int32) {
	ops, n := p.flat.Tasks[t].Ops, len(p.mem.accesses)
	p.mem.accesses = append(p.mem.accesses, p.mem.accesses[from:to]...)
	for i := n; i < len(p.mem.accesses); i++ {
		a := &p.mem.accesses[i]
		bufs := ops[a.op].InBuf
		if a.write {
			bufs = ops[a.op].OutBuf
		}
		a.task, a.buf = t, int32(bufs[a.arg])
		p.mem.place(a)
	}
}

func (m *memoryMap) addAccess(a access) {
	m.place(&a)
	m.accesses = append(m.accesses, a)
}

// place notes where an access is.
func (m *memoryMap) place(a *access) {
	a.loc = m.locOf[a.buf]
	l := &m.locs[a.loc]
	if !m.touched[a.buf] {
		m.touched[a.buf] = true
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

// expander turns views into runs. It keeps its buffers between calls.
type expander struct {
	cur, next []run
	dropped   int // runs that were not made because there are too many of them
}

// expand returns the runs of a view at a position, in ascending order, valid until the next call. Addresses are bytes
// of one copy if bytes is set (the layout is linear then), else row-major element numbers.
func (x *expander) expand(b *ir.Buffer, dims []ir.Range, pos int, bytes bool) []run {
	x.dropped = 0
	cur := append(x.cur[:0], run{0, 1})
	inner := 1
	for d := len(dims) - 1; d >= 0; d-- {
		whole := len(cur) == 1 && cur[0] == run{0, inner} // the inner dimensions are covered: runs join up
		next := x.next[:0]
		r := &dims[d]
		lo, hi := r.Lo.At(pos), r.Hi.At(pos)
		for lo < hi {
			end := hi
			if r.Shared() {
				if lo, end = share(r, lo, hi, pos); lo >= hi {
					break
				}
			}
			if whole {
				next = append(next, run{lo * inner, end * inner})
			} else {
				next = slices.Grow(next, min(maxRuns, (end-lo)*len(cur)))
				for e := lo; e < end && x.room(next); e++ {
					for _, c := range cur {
						next = append(next, run{c.lo + e*inner, c.hi + e*inner})
					}
				}
			}
			if !x.room(next) {
				return nil
			}
			lo = end
		}
		inner *= b.Shape[d]
		x.cur, x.next = next, cur
		if cur = next; len(cur) == 0 {
			return nil
		}
	}
	if bytes {
		size := unit(b)
		for i := range cur {
			cur[i].lo, cur[i].hi = cur[i].lo*size, cur[i].hi*size
		}
	}
	return cur
}

// room: a view of more runs than the whole budget is not expanded further.
func (x *expander) room(runs []run) bool {
	if len(runs) > maxRuns {
		x.dropped = len(runs)
		return false
	}
	return true
}

// share returns the first piece of [lo, hi) that belongs to the part of r.
func share(r *ir.Range, lo, hi, pos int) (int, int) {
	part := r.Part.At(pos)
	block := lo / r.Block
	skip := (part - block%r.Parts + r.Parts) % r.Parts
	if skip > 0 {
		block += skip
		lo = block * r.Block
	}
	return lo, min(hi, (block+1)*r.Block)
}

// unit is the number of bytes of one element in a linear layout.
func unit(b *ir.Buffer) int {
	switch b.Layout.Kind {
	case ir.Word32:
		return 4
	case ir.Word64:
		return 8
	default:
		return b.DType.Bits() / 8
	}
}
