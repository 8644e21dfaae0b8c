package host

import "amkc/runtime/driver"

// A prompt that begins as a text in another region does is not decoded so far either: that region is copied. So it is
// with several answers to one prompt, and with prompts that have a beginning in common while their texts are decoded.

// worthCopying is the share of all positions, as a divisor, from which on tokens are worth the copy of a region, which
// has rows for all of them.
const worthCopying = 32

// borrow gives a sequence whose prompt is not read the rows of the region that has most of it, if it gains by that.
func (b *Batch) borrow(id int) error {
	l := &b.slots[id]
	if len(l.rest) < 2 || l.Echo {
		return nil
	}
	prompt := append(l.ids[:len(l.ids):len(l.ids)], l.rest[:len(l.rest)-1]...)
	from, known := id, len(l.ids)
	for i := range b.slots {
		if n := shared(b.slots[i].ids, prompt); n > known {
			from, known = i, n
		}
	}
	gain := known - len(l.ids)
	if from == id || gain*worthCopying < b.s.info.MaxSeq {
		return nil
	}
	region := func(i int) driver.Ptr { return b.s.mem.cache + driver.Ptr(int64(i)*b.s.info.CacheBytes) }
	if err := b.s.stream.CopyDtoD(region(id), region(from), int(b.s.info.CacheBytes)); err != nil {
		return err
	}
	l.ids, l.rest = prompt[:known], l.rest[gain:]
	return nil
}

// shared is how many tokens two texts begin with in common.
func shared(a, b []int) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
