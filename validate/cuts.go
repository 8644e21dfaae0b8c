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

// appendBounds appends the addresses in ascending order, each once.
func (c *cuts) appendBounds(dst []int) []int {
	if c.set == nil {
		slices.Sort(c.list)
		return append(dst, slices.Compact(c.list)...)
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

// rank returns the number of cuts below an address.
func (c *cuts) rank(addr int) int {
	w := c.set[addr>>6] & (1<<(addr&63) - 1)
	return int(c.below[addr>>6]) + bits.OnesCount64(w)
}

// bitsPerView bounds the bits of a location, in words for each view of it, so that all of them together are linear in the
// views of the program.
const bitsPerView = 8

// sizeCuts gives bits to the locations that are small for the number of views of them.
func (p *proof) sizeCuts() {
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
func (p *proof) bitWords(loc int) int {
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
