package host

import (
	"context"
	"slices"
)

// alone decodes a sequence by the kernel of one token.
func (b *Batch) alone(ctx context.Context, id int) ([]Token, error) {
	l := &b.slots[id]
	b.enter(id)
	steps, stops := b.launch([]int{id})
	steps = b.s.one.limit(b.s.position, steps, l.Logits)
	ids, err := b.s.run(ctx, burst{tokens: steps, token: l.rest[0], stops: stops, logits: l.Logits,
		choose: only(l.choosing), counts: true}, nil)
	if err != nil {
		return nil, err
	}
	return b.plain([]int{id}, map[int]row{id: {0, ids}})
}

// together decodes sequences by passes.
func (b *Batch) together(ctx context.Context, live []int) ([]Token, error) {
	n := len(b.slots)
	steps, stops := b.launch(live)
	positions, forced := make([]int, n), make([]int, steps*n)
	for i := range positions {
		positions[i] = absent
	}
	for i := n; i < len(forced); i++ {
		forced[i] = -1 // what the step before has chosen
	}
	logits := false
	for _, id := range live {
		l := &b.slots[id]
		positions[id], forced[id] = len(l.ids), l.rest[0]
		logits = logits || l.Logits
	}
	ids, err := b.s.run(ctx, burst{kernel: b.s.several[0], tokens: len(forced), forced: forced, stops: stops,
		logits: logits, positions: positions, choose: b.choose(live), counts: true}, nil)
	if err != nil {
		return nil, err
	}
	rows := map[int]row{}
	for _, id := range live {
		of := row{at: id}
		for at := id; at < len(ids); at += n {
			of.ids = append(of.ids, ids[at])
		}
		rows[id] = of
	}
	return b.plain(live, rows)
}

// choose is how a launch of sequences chooses; nil: by the largest logits.
func (b *Batch) choose(live []int) (all []*choosing) {
	for _, id := range live {
		if c := b.slots[id].choosing; c != nil {
			if all == nil {
				all = make([]*choosing, len(b.slots))
			}
			all[id] = c
		}
	}
	return all
}

// launch says how many steps the next launch has, and which ids end it.
func (b *Batch) launch(live []int) (steps int, stops []int) {
	steps = b.plainSteps(live)
	if b.o.Within > 0 {
		steps = min(steps, b.stepsWithin(live))
	}
	for _, id := range live {
		l := &b.slots[id]
		if steps = min(steps, l.left); l.Logits || l.Masked {
			return 1, nil
		}
		stops = append(stops, l.Stops...)
	}
	slices.Sort(stops)
	if stops = slices.Compact(stops); len(stops) > MaxStops {
		return 1, nil
	}
	return steps, stops
}

// stepsWithin is how many steps fit into Within, by the time that a step of the last launch took.
func (b *Batch) stepsWithin(live []int) int {
	step := b.step[len(live) > 1]
	if step == 0 {
		return 1
	}
	within := b.o.Within
	if slices.ContainsFunc(b.order, func(id int) bool { return len(b.slots[id].rest) > 1 }) {
		within = min(within, b.o.Pause/4) // the rest of a pause is for prompts
	}
	steps := int(within / step)
	for _, id := range live {
		steps = min(steps, b.slots[id].given)
	}
	return max(1, steps)
}

// A row is what a launch has chosen for a sequence.
type row struct {
	at  int   // where the logits of the first of its tokens are, and those of others after them
	ids []int // one after the other
}

// take makes results of what a launch has chosen for each sequence.
func (b *Batch) take(live []int, rows map[int]row) ([]Token, error) {
	logits := map[int][][]float32{}
	for _, id := range live { // of each that asks for them, its own rows and no other
		if of := rows[id]; b.slots[id].Logits {
			err := b.s.readLogits(of.at, len(of.ids), func(_ int, l []float32) error {
				logits[id] = append(logits[id], l)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	var all []Token
	for _, id := range live {
		l := &b.slots[id]
		for i, token := range rows[id].ids {
			l.ids, l.rest = append(l.ids, l.rest...), []int{token}
			l.left, l.given = l.left-1, l.given+1
			if token == noToken {
				l.left = 0
				all = append(all, Token{Sequence: id, Ended: true, Err: nothingAt(len(l.ids))})
				break
			}
			l.choosing.chose(token)
			if !l.replaced() && slices.Contains(l.Stops, token) {
				l.left = 0
			}
			t := Token{Sequence: id, ID: token, Ended: l.left == 0}
			if l.Logits {
				t.Logits = logits[id][i]
			}
			all = append(all, t)
		}
	}
	return all, nil
}
