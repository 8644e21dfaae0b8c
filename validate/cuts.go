package validate

import (
	"math/bits"
	"slices"
)

// cuts are the addresses at which a location is cut: a list to be sorted, or a bit for every address, whichever is
// smaller. With bits, the number of a segment is the number of bits below its first address.
type cuts struct {
	list  []int
	set   []uint64
	below []int32 // for each word of set: bits in the words before
}

// add cuts at both ends of a run.
func (c *cuts) add(r run) {
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

// reserve makes room for the ends of so many runs, if they are many.
func (c *cuts) reserve(runs int) {
	if c.set == nil && runs >= longList {
		c.list = slices.Grow(c.list, 2*runs)
	}
}

// appendBounds appends the addresses in ascending order, each once.
func (c *cuts) appendBounds(dst []int) []int {
	if c.set == nil {
		return append(dst, slices.Compact(sortCuts(c.list))...)
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

// sortCuts returns a list in ascending order, and may change it.
func sortCuts(list []int) []int {
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
func (c *cuts) rank(addr int) int {
	w := c.set[addr>>6] & (1<<(addr&63) - 1)
	return int(c.below[addr>>6]) + bits.OnesCount64(w)
}

// bitsPerView bounds the bits of a location, in words for each view of it, so that all of them together are linear in
// the views of the program.
const bitsPerView = 8

// sizeCuts gives bits to the locations that are small for the number of views of them.
func (p *Proof) sizeCuts() {
	p.counts = sized(p.counts, len(p.locs))
	for i := range p.accesses {
		p.counts[p.accesses[i].loc]++
	}
	total := 0
	for i := range p.locs {
		total += p.bitWords(i)
	}
	p.bits, p.below = sized(p.bits, total), sized(p.below, total)
	set, below := p.bits, p.below
	for i := range p.locs {
		l, n := &p.locs[i], p.bitWords(i)
		l.cuts = cuts{list: l.cuts.list[:0]}
		if n > 0 {
			l.cuts.set, l.cuts.below = set[:n:n], below[:n:n]
			set, below = set[n:], below[n:]
		}
	}
}

// bitWords returns how many words of bits a location has, 0 for none.
func (p *Proof) bitWords(loc int) int {
	l, end := &p.locs[loc], 0
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
	if n := end/64 + 1; end > 0 && n <= bitsPerView*int(p.counts[loc]) {
		return n
	}
	return 0
}
