package host

import (
	"context"
	"slices"
	"time"
)

// A step of a batch verifies drafts where one of its sequences has some, by a pass of several rows of each, and of one
// that is alone by a pass of rows. Sequences without drafts ride along with the token that they would have decoded
// anyhow. Each has a pace of its own, so that text without repeats does not make it draft for the others' sake.

// verifier is the kernel that verifies drafts of sequences; nil: there is none.
func (b *Batch) verifier(live []int) *megakernel {
	if n := len(b.s.passes); n > 0 && len(live) == 1 {
		return b.s.passes[n-1]
	}
	for _, k := range b.s.several {
		if k.info.NumRows() > 1 {
			return k
		}
	}
	return nil
}

// drafts are those of sequences for the next step; nil: there are none, or no pass for them. A pass of several rows
// appends these to all sequences, and so each wants room for them.
func (b *Batch) drafts(live []int) map[int][]int {
	if b.o.Drafter == nil || len(live) == 0 {
		return nil
	}
	k := b.verifier(live)
	if k == nil {
		return nil
	}
	var all map[int][]int
	for _, id := range live {
		l := &b.slots[id]
		if k.limit(len(l.ids), k.info.NumRows(), false) < k.info.NumRows() {
			return nil
		}
		n := min(l.left, k.info.NumRows()) - 1
		if n < 1 || l.single() || !l.pace.Due() {
			continue
		}
		guess := l.pace.Draft(b.o.Drafter, slices.Concat(l.ids, l.rest), n)
		if len(guess) == 0 || b.s.valid(guess...) != nil {
			continue
		}
		if all == nil {
			all = map[int][]int{}
		}
		all[id] = guess[:min(len(guess), n)]
	}
	return all
}

// plainSteps is how many steps a launch without drafts has at most: while there is a drafter that may have some soon,
// more and more.
func (b *Batch) plainSteps(live []int) int {
	if b.o.Drafter == nil || b.verifier(live) == nil {
		return b.o.Steps
	}
	pace := maxSteps
	for _, id := range live {
		if l := &b.slots[id]; !l.single() {
			pace = min(pace, l.pace.Steps())
		}
	}
	return min(b.o.Steps, pace)
}

// plain is take of a launch without drafts.
func (b *Batch) plain(live []int, rows map[int]row) ([]Token, error) {
	for _, id := range live {
		b.slots[id].pace.Decoded(len(rows[id].ids), b.s.took)
	}
	if n := len(rows[live[0]].ids); n > 0 {
		b.step[len(live) > 1] = b.s.took / time.Duration(n)
	}
	return b.take(live, rows)
}

// verify decodes the last token of each sequence, with its drafts after it, and gives what would have been chosen
// without them.
func (b *Batch) verify(ctx context.Context, live []int, drafts map[int][]int) ([]Token, error) {
	k := b.verifier(live)
	n := k.info.NumRows()
	forced := make([]int, k.info.NumTokens())
	run := burst{kernel: k, tokens: len(forced), forced: forced, counts: true}
	first := func(int) int { return 0 } // token of a sequence
	if k.info.NumSequences() > 1 {
		first = func(id int) int { return id * n }
		run.positions, run.choose = slices.Repeat([]int{absent}, len(b.slots)), b.choose(live)
	} else {
		b.enter(live[0])
		run.choose = only(b.slots[live[0]].choosing)
	}
	for _, id := range live {
		l := &b.slots[id]
		copy(forced[first(id):], append(slices.Clone(l.rest), drafts[id]...))
		run.logits = run.logits || l.Logits
		if run.positions != nil {
			run.positions[id] = len(l.ids)
		}
	}
	ids, err := b.s.run(ctx, run, nil)
	if err != nil {
		return nil, err
	}
	rows := map[int]row{}
	for _, id := range live {
		l, chosen, guess := &b.slots[id], ids[first(id):][:n], drafts[id]
		right := accepted(guess, chosen, l.Stops)
		rows[id] = row{first(id), chosen[:right+1]}
		if len(guess) > 0 {
			l.pace.Verified(right, b.s.took)
			b.s.drafts.Drafted += len(guess)
			b.s.drafts.Accepted += right
		} else {
			l.pace.Decoded(1, 0) // a pass says nothing of a step
		}
	}
	b.s.drafts.Passes++
	return b.take(live, rows)
}

// accepted is how many of the drafts are what was chosen in front of each, up to one that ends the text.
func accepted(drafts, chosen, stops []int) int {
	n := 0
	for n < len(drafts) && drafts[n] == chosen[n] && !slices.Contains(stops, chosen[n]) {
		n++
	}
	return n
}
