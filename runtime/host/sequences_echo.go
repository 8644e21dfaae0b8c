package host

import "context"

// echoPart is how many tokens of a prompt are read at a time where their logits are wanted: as many as a pass over a
// prompt has logits of, and the token behind it.
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
