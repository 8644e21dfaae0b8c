package host

import (
	"context"

	"amkc/runtime/driver"
)

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

// echoPart is how many tokens of a prompt are read at a time where their logits are wanted: as many as a pass over a
// prompt has logits of, and the token after it.
const echoPart = maxSteps + 1

// echo decodes tokens of a prompt, and keeps the logits after each for the one that follows. They come with the results
// of the step, and of a later one if this fails.
func (b *Batch) echo(ctx context.Context, id, n int) error {
	l := &b.slots[id]
	rows := make([][]float32, 0, n)
	_, err := b.s.Feed(ctx, l.rest[:n], func(_ int, logits []float32) error {
		rows = append(rows, logits)
		return nil
	})
	if err != nil {
		return err
	}
	for i, row := range rows {
		l.echoed = append(l.echoed, Token{Sequence: id, ID: l.rest[i+1], Logits: row, Given: true})
	}
	return nil
}

// echoed takes what echo has kept.
func (b *Batch) echoed() (all []Token) {
	for _, id := range b.order {
		all = append(all, b.slots[id].echoed...)
		b.slots[id].echoed = nil
	}
	return all
}
