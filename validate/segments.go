package validate

import (
	"math/bits"
	"slices"

	"amkc/ir"
	"amkc/validate/views"
)

// run is a contiguous piece of a view: addresses [lo, hi), and after the location is cut, segments [lo, hi).
type run struct{ lo, hi int }

// segmentation is how locations are cut into segments, and the segments that each view has.
type segmentation struct {
	spans  []run // addresses of the views that do not depend on pos
	runs   []run // the same as segments; views of equal bodies share them
	bounds []int // of all segments, location by location
	all    []segment
	views  []int32  // of each location: how many there are
	bits   []uint64 // of all boundaries that are kept as bits
	below  []int32
}

// makeSegments expands every view that does not depend on pos into runs, and cuts the locations at their ends.
func (p *Proof) makeSegments() {
	p.groupViews()
	if !p.expandViews() {
		return
	}
	p.segments.bounds = p.segments.bounds[:0]
	segments := 0
	for i := range p.mem.locs {
		l := &p.mem.locs[i]
		if l.symbolic {
			continue
		}
		if !p.initialRows(l, p.flat.Lo, &l.boundaries) {
			return
		}
		from := len(p.segments.bounds)
		p.segments.bounds = l.boundaries.appendBounds(p.segments.bounds)
		l.bounds = p.segments.bounds[from:len(p.segments.bounds):len(p.segments.bounds)]
		l.base = segments
		segments += max(0, len(l.bounds)-1)
	}
	p.stats.Segments += segments
	p.segments.all = newSegments(p.segments.all, segments)
	for i := range p.mem.locs {
		if l := &p.mem.locs[i]; !l.symbolic {
			l.segs = p.segments.all[l.base : l.base+max(0, len(l.bounds)-1)]
		}
	}
	p.numberRuns()
}

// expandViews lists the addresses of every view that does not depend on pos, once for tasks of one body, and notes
// where they cut their location.
func (p *Proof) expandViews() bool {
	p.sizeBoundaries()
	p.segments.spans = p.segments.spans[:0]
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		l := &p.mem.locs[a.loc]
		if l.symbolic {
			continue
		}
		if like := p.sameAccess(int32(i)); like != nil && !p.mem.locs[like.loc].symbolic {
			a.from, a.to = like.from, like.to
			if !p.spend(&p.work.runs, int(a.to-a.from), maxRuns, "contiguous pieces of views", a.task) {
				return false
			}
			if a.loc == like.loc {
				continue // cut there already
			}
		} else {
			runs := p.mem.expanders[0].expand(&p.flat.Buffers[a.buf], a.dims(p.flat), p.flat.Lo, l.paged)
			if !p.spend(&p.work.runs, len(runs)+p.mem.expanders[0].dropped, maxRuns, "contiguous pieces of views",
				a.task) {
				return false
			}
			a.from = int32(len(p.segments.spans))
			p.segments.spans = append(p.segments.spans, runs...)
			a.to = int32(len(p.segments.spans))
		}
		l.boundaries.reserve(int(a.to - a.from))
		for _, r := range p.segments.spans[a.from:a.to] {
			l.boundaries.add(r)
		}
	}
	return true
}

// sameAccess returns the access of the same view by the root of its task's body, or nil.
func (p *Proof) sameAccess(i int32) *access {
	t := p.mem.accesses[i].task
	if r := p.Root(int(t)); r != int(t) {
		return &p.mem.accesses[p.mem.first[r]+i-p.mem.first[t]]
	}
	return nil
}

// numberRuns turns addresses into segment numbers. Views of one body and location share theirs.
func (p *Proof) numberRuns() {
	p.segments.runs = append(p.segments.runs[:0], p.segments.spans...)
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		l := &p.mem.locs[a.loc]
		if l.symbolic {
			continue
		}
		like := p.sameAccess(int32(i))
		switch {
		case like == nil || p.mem.locs[like.loc].symbolic:
			after := run{}
			for k := a.from; k < a.to; k++ {
				after = l.segments(p.segments.spans[k], after.hi)
				p.segments.runs[k] = after
			}
		case like.loc != a.loc:
			from, after := int32(len(p.segments.runs)), run{}
			for _, r := range p.segments.spans[a.from:a.to] {
				after = l.segments(r, after.hi)
				p.segments.runs = append(p.segments.runs, after)
			}
			a.from, a.to = from, int32(len(p.segments.runs))
		}
	}
}

// initialRows cuts a cache where its initial rows end, so that every segment is defined or not as a whole.
func (p *Proof) initialRows(l *location, pos int, c *boundaries) bool {
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

// makeSegmentsAt makes the segments of a location that is looked at on its own, at one position.
func (p *Proof) makeSegmentsAt(l *location, runs []run, pos int) bool {
	l.boundaries = boundaries{}
	for _, r := range runs {
		l.boundaries.add(r)
	}
	if !p.initialRows(l, pos, &l.boundaries) {
		return false
	}
	l.bounds = l.boundaries.appendBounds(nil)
	l.segs = newSegments(nil, max(0, len(l.bounds)-1))
	p.stats.Segments += len(l.segs)
	return true
}

// newSegments returns n segments that nobody has touched, in the memory of old ones.
func newSegments(old []segment, n int) []segment {
	segs := slices.Grow(old[:0], n)[:n]
	for i := range segs {
		segs[i] = segment{writer: -1, shared: -1}
	}
	return segs
}

// segments turns addresses into segment numbers. The runs of a view are ascending: from is where the one before
// ended, 0 for the first.
func (l *location) segments(r run, from int) run {
	if l.boundaries.set != nil {
		return run{l.boundaries.rank(r.lo), l.boundaries.rank(r.hi)}
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

// boundaries are the addresses at which a location is cut: a list to be sorted, or a bit for every address, whichever
// is smaller. With bits, the number of a segment is the number of bits below its first address.
type boundaries struct {
	list  []int
	set   []uint64
	below []int32 // for each word of set: bits in the words before
}

// add cuts at both ends of a run.
func (c *boundaries) add(r run) {
	if c.set != nil {
		c.set[r.lo>>6] |= 1 << (r.lo & 63)
		c.set[r.hi>>6] |= 1 << (r.hi & 63)
		return
	}
	n := len(c.list)
	if n >= 2 && c.list[n-2] == r.lo && c.list[n-1] == r.hi {
		return // often as before: all of it
	}
	c.list = append(c.list, r.lo, r.hi)
}

// reserve makes room for the ends of n runs, if they are many.
func (c *boundaries) reserve(runs int) {
	if c.set == nil && runs >= longList {
		c.list = slices.Grow(c.list, 2*runs)
	}
}

// appendBounds appends the addresses in ascending order, each once.
func (c *boundaries) appendBounds(dst []int) []int {
	if c.set == nil {
		return append(dst, slices.Compact(sortAddresses(c.list))...)
	}
	from := len(dst)
	for i, w := range c.set {
		c.below[i] = int32(len(dst) - from)
		for ; w != 0; w &= w - 1 {
			dst = append(dst, i<<6+bits.TrailingZeros64(w))
		}
	}
	return dst
}

// The addresses of one view are ascending, so that a long list of few views is merged, which is several times as fast
// as sorting it.
const (
	longList = 1 << 12
	fewViews = 16
)

// sortAddresses returns a list in ascending order, and may change it.
func sortAddresses(list []int) []int {
	var pieces [][]int
	for from := 0; len(list) >= longList && from < len(list) && len(pieces) <= fewViews; {
		end := from + 1
		for end < len(list) && list[end] >= list[end-1] {
			end++
		}
		pieces, from = append(pieces, list[from:end]), end
	}
	if len(pieces) == 0 || len(pieces) > fewViews {
		slices.Sort(list)
		return list
	}
	for len(pieces) > 1 {
		half := pieces[:0]
		for k := 0; k < len(pieces); k += 2 {
			if k+1 < len(pieces) {
				half = append(half, merged(pieces[k], pieces[k+1]))
			} else {
				half = append(half, pieces[k])
			}
		}
		pieces = half
	}
	return pieces[0]
}

// merged merges two ascending lists.
func merged(a, b []int) []int {
	out := make([]int, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] <= b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// rank returns the number of cuts below an address.
func (c *boundaries) rank(addr int) int {
	w := c.set[addr>>6] & (1<<(addr&63) - 1)
	return int(c.below[addr>>6]) + bits.OnesCount64(w)
}

// bitsPerView bounds the bits of a location, in words for each view of it, so that all of them together are linear in
// the views of the program.
const bitsPerView = 8

// sizeBoundaries gives bits to the locations that are small for the number of views of them.
func (p *Proof) sizeBoundaries() {
	p.segments.views = sized(p.segments.views, len(p.mem.locs))
	for i := range p.mem.accesses {
		p.segments.views[p.mem.accesses[i].loc]++
	}
	total := 0
	for i := range p.mem.locs {
		total += p.bitWords(i)
	}
	p.segments.bits, p.segments.below = sized(p.segments.bits, total), sized(p.segments.below, total)
	set, below := p.segments.bits, p.segments.below
	for i := range p.mem.locs {
		l, n := &p.mem.locs[i], p.bitWords(i)
		l.boundaries = boundaries{list: l.boundaries.list[:0]}
		if n > 0 {
			l.boundaries.set, l.boundaries.below = set[:n:n], below[:n:n]
			set, below = set[n:], below[n:]
		}
	}
}

// bitWords returns how many words of bits a location has, 0 for none.
func (p *Proof) bitWords(loc int) int {
	l, end := &p.mem.locs[loc], 0
	if l.symbolic {
		return 0
	}
	for _, k := range l.bufs {
		b := &p.flat.Buffers[k]
		n := b.Numel()
		if l.paged {
			n *= unit(b)
		}
		end = max(end, n)
	}
	if n := end/64 + 1; end > 0 && n <= bitsPerView*int(p.segments.views[loc]) {
		return n
	}
	return 0
}
