package host

import (
	"cmp"
	"context"
	"slices"
	"time"

	"amkc/runtime/driver"
)

// read decodes parts of prompts, of each up to its last token, as many tokens as a step may. Every other step begins
// with the shortest prompt, and the others with the one that was admitted first: a short prompt does not wait for a
// long one, and no prompt waits for all that are shorter.
func (b *Batch) read(ctx context.Context) error {
	var unread []int
	for _, id := range b.order {
		if l := &b.slots[id]; len(l.rest) > 1 && !l.held {
			unread = append(unread, id)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	if b.shortest {
		slices.SortStableFunc(unread, func(x, y int) int {
			return cmp.Compare(len(b.slots[x].rest), len(b.slots[y].rest))
		})
	}
	b.shortest = !b.shortest
	begun, read := time.Now(), 0
	for _, id := range unread {
		l := &b.slots[id]
		if b.part(read, len(l.ids), begun) <= 0 || b.awaits(id) {
			continue
		}
		if err := b.borrow(id); err != nil {
			return err
		}
		n, first := min(b.part(read, len(l.ids), begun), len(l.rest)-1), len(l.ids)
		if l.Echo {
			n = min(n, echoPart)
		}
		if n <= 0 { // the last token is all that is left, or others have read what a step may
			continue
		}
		b.enter(id)
		var err error
		if since := time.Now(); l.Echo {
			err = b.echo(ctx, id, n)
		} else if err = b.s.read(ctx, l.rest[:n]); err == nil {
			b.s.pace.read(n, first, b.s.leastPart(), time.Since(since))
		}
		if err != nil {
			return err
		}
		l.ids, l.rest = append(l.ids, l.rest[:n]...), l.rest[n:]
		read += n
	}
	return nil
}

// part is how many tokens of a prompt at a position a step still reads that began to read at some time, and has read
// others.
func (b *Batch) part(read, at int, begun time.Time) int {
	switch {
	case b.o.Prompt > 0:
		return b.o.Prompt - read
	case !b.waits():
		return max(b.s.facts.Prompt, maxSteps) - read
	}
	least := b.s.leastPart()
	n := b.s.pace.fits(b.o.Pause*7/8-b.decoding-time.Since(begun), at, least)
	if read == 0 {
		n = max(n, least)
	}
	return n
}

// waits reports whether a sequence waits for its next token, one that is held too.
func (b *Batch) waits() bool {
	return slices.ContainsFunc(b.order, func(id int) bool {
		l := &b.slots[id]
		return l.left > 0 && len(l.rest) == 1
	})
}

// A prompt that begins as a text in another region does is not decoded so far either: that region is copied. So it is
// with several answers to one prompt, and with prompts that have a beginning in common while their texts are decoded.

// place chooses the free region for a prompt, and how many tokens of it that has; -1: there is none. It is the one that
// has most of the prompt, if that is at least half of what it has: a conversation goes on, and little is lost.
// Otherwise it is the one whose sequence was retired first, so that a new conversation which begins alike overwrites
// none that may go on, and borrows the beginning.
func (b *Batch) place(prompt []int, echo bool) (id, known int) {
	id = -1
	oldest, has := -1, 0
	for i := range b.slots {
		l := &b.slots[i]
		if l.taken {
			continue
		}
		n := 0
		if !echo { // the last token is decoded anyhow, for what follows it
			n = shared(l.ids, prompt[:len(prompt)-1])
		}
		if n > known && 2*n >= len(l.ids) {
			id, known = i, n
		}
		if oldest < 0 || l.since < b.slots[oldest].since {
			oldest, has = i, n
		}
	}
	if id < 0 {
		return oldest, has
	}
	return id, known
}

// leave ends the sequence of a region, whose rows stay.
func (b *Batch) leave(id int) {
	b.retired++
	b.slots[id] = slot{ids: b.slots[id].ids, since: b.retired}
}

// worthCopying is the share of all positions, as a divisor, from which on tokens are worth the copy of a region, which
// has rows for all of them.
const worthCopying = 32

// awaits reports whether a sequence is to borrow what another one that is ahead of it has yet to read.
func (b *Batch) awaits(id int) bool {
	l := &b.slots[id]
	for at, by := range b.order {
		other := &b.slots[by]
		if by == id || l.Echo || other.held || len(other.rest) < 2 || len(other.ids) < len(l.ids) ||
			len(other.ids) == len(l.ids) && at > slices.Index(b.order, id) {
			continue
		}
		n, most := len(l.ids), min(len(l.ids)+len(l.rest), len(other.ids)+len(other.rest))
		for n < most && l.token(n) == other.token(n) {
			n++
		}
		if (n-len(other.ids))*worthCopying >= b.s.info.MaxSeq {
			return true
		}
	}
	return false
}

// token is one of a text, which has been decoded or is to be decoded next.
func (l *slot) token(i int) int {
	if i < len(l.ids) {
		return l.ids[i]
	}
	return l.rest[i-len(l.ids)]
}

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
	if err := b.s.move(region(id), region(from), int(b.s.info.CacheBytes)); err != nil {
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
