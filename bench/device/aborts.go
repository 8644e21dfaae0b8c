package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"amkc/runtime/host"
)

// aborts gives passes up somewhere in their middle, and reads on: prompts, passes of rows and steps of several
// sequences, with drafts and without, as far as the build has them. What a pass has left that was aborted must not
// matter.
func (c *comparer) aborts() error {
	of := []string{"prompts"}
	if c.s.PassRows() > 1 {
		of = append(of, "rows")
	}
	if c.s.Sequences() > 1 {
		of = append(of, "sequences")
	}
	if slices.Contains(kindsOf(c.s), "mixed") {
		of = append(of, "mixed")
	}
	what := of[c.rng.IntN(len(of))]
	if steps := map[string]func() error{"sequences": c.sequences, "mixed": c.mixed}[what]; steps != nil {
		c.giving = what
		defer func() { c.giving = "" }()
		return steps()
	}
	t, err := c.enter()
	if err != nil {
		return err
	}
	most := len(t.ids)
	if what == "rows" {
		most = c.s.PassRows()
	}
	for range 1 + c.rng.IntN(4) {
		left := min(most, len(t.ids)-c.s.Position())
		if left == 0 {
			break
		}
		if err := c.cancel(t, partOf(c.rng, left), what); err != nil {
			return err
		}
	}
	if left := len(t.ids) - c.s.Position(); left > 0 {
		if err := c.read(t, partOf(c.rng, left), true); err != nil {
			return err
		}
	}
	c.count("aborts of " + what)
	return c.save()
}

// cancel reads the next tokens of a text, and then again, until they are cancelled at some time or complete. The
// session stands where it stood or after some of them, and what it has in the cache up to there must be right.
func (c *comparer) cancel(t *text, n int, what string) error {
	at, start := c.s.Position(), time.Now()
	if err := c.read(t, n, true); err != nil {
		return err
	}
	took := time.Since(start)
	if err := c.s.Rewind(at); err != nil {
		return err
	}
	ctx, cancel := c.cancelled(took)
	defer cancel()
	var each func(int, []float32) error
	if c.rng.IntN(2) == 0 {
		each = func(position int, logits []float32) error {
			c.compare(hashOf(logits) == t.logits[position], position, "in a part of %d tokens from %d on, given up", n,
				at)
			return nil
		}
	}
	_, err := c.s.Feed(ctx, t.ids[at:at+n], each)
	stands := c.s.Position()
	switch {
	case err != nil && !errors.Is(err, errCancelled):
		return err
	case stands < at || stands > at+n:
		return fmt.Errorf("the session stands at %d after tokens %d to %d were aborted", stands, at, at+n)
	case err != nil && stands < at+n:
		c.Cancelled[what]++
	}
	return nil
}

// step is a step of a batch, the last of which took so long. If steps are to be aborted, it may be, and has no tokens
// then.
func (c *comparer) step(b *host.Batch, took *time.Duration) ([]host.Token, error) {
	ctx, end, start := c.ctx, func() {}, time.Now()
	if c.giving != "" && *took > 0 && c.rng.IntN(2) == 0 {
		ctx, end = c.cancelled(*took)
	}
	tokens, err := b.Step(ctx)
	end()
	if errors.Is(err, errCancelled) {
		c.Cancelled[c.giving]++
		return nil, nil
	}
	*took = time.Since(start)
	return tokens, err
}

// countSteps counts a case of steps of a batch.
func (c *comparer) countSteps(kind string) {
	if c.giving != "" {
		kind = "aborts of " + kind
	}
	c.count(kind)
}

// cancelled is a context that is cancelled during an activity that takes so long, or not long after.
func (c *comparer) cancelled(took time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	after := 1.2 * c.rng.Float64() * float64(took)
	timer := time.AfterFunc(time.Duration(after), func() { cancel(errCancelled) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}
