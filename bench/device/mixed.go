package main

import (
	"slices"
	"time"

	"amkc/runtime/host"
)

// mixed continues texts by the kernel's own choices, which have been found token by token, in passes of several rows of
// several sequences: with drafts, right ones, wrong ones and garbage. The same tokens must come. Alongside them others
// follow a text without drafts, whose logits are compared. All join and leave at any time; each text is a case.
func (c *comparer) mixed() error {
	left := min(c.left, 1+c.rng.IntN(2*c.s.Sequences()))
	var scripts scripts
	for range left {
		s, err := c.script()
		if err != nil {
			return err
		}
		scripts = append(scripts, s)
	}
	c.in = -1 // a batch takes the cache for its own
	rng := c.aside()
	b := c.s.NewBatch(host.BatchOptions{Steps: 1 + rng.IntN(16), Prompt: []int{0, 1, 7, 64}[rng.IntN(4)],
		Drafter: scripts})
	type continued struct {
		script   *script
		follower bool // it is given its tokens, and asks for logits
		read     int  // tokens of the text that are known
	}
	live, before, took := map[int]*continued{}, c.s.Drafts().Passes, time.Duration(0)
	for next := 0; next < len(scripts) || len(live) > 0; {
		for next < len(scripts) && len(live) < c.s.Sequences() && rng.IntN(3) > 0 {
			x := &continued{script: scripts[next], follower: rng.IntN(4) == 0, read: scripts[next].prompt}
			id, _, err := b.Admit(x.script.text[:x.read], host.SequenceOptions{Logits: x.follower,
				Most: len(x.script.text) - x.read})
			if err != nil {
				return err
			}
			live[id] = x
			next++
			c.countSteps("mixed")
		}
		tokens, err := c.step(b, &took)
		if err != nil {
			return err
		}
		for _, got := range tokens {
			x := live[got.Sequence]
			if x == nil {
				continue // it has been retired with an earlier token of the step
			}
			want := x.script.text[x.read]
			same := got.ID == want && (!x.follower || hashOf(got.Logits) == x.script.logits[x.read])
			c.compare(same, x.read-1, "of sequence %d, with drafts of %d, token %d was chosen, and %d without",
				got.Sequence, len(live), got.ID, want)
			if len(live) > 1 {
				c.Alongside++
			}
			x.read++
			if got.Ended || !same || rng.IntN(60) == 0 {
				b.Retire(got.Sequence)
				delete(live, got.Sequence)
			}
		}
	}
	c.Drafts += c.s.Drafts().Passes - before
	return nil
}

// script is the beginning of a text, and how the kernel of one token continues it.
func (c *comparer) script() (*script, error) {
	t, info := c.texts[c.rng.IntN(len(c.texts))], c.s.Info()
	n := partOf(c.rng, min(len(t.ids), info.MaxSeq))
	s := &script{rng: c.aside(), text: slices.Clone(t.ids[:n]), vocab: info.Vocab, prompt: n}
	s.logits = make([]uint64, n)
	c.s.Reset()
	if n > 1 {
		if _, err := c.s.Feed(c.ctx, s.text[:n-1], nil); err != nil {
			return nil, err
		}
	}
	for range 1 + c.rng.IntN(min(40, info.MaxSeq-n+1)) {
		var hash uint64
		next, err := c.s.Feed(c.ctx, s.text[len(s.text)-1:], func(_ int, logits []float32) error {
			hash = hashOf(logits)
			return nil
		})
		if err != nil {
			return nil, err
		}
		s.text, s.logits = append(s.text, next), append(s.logits, hash)
	}
	return s, nil
}

// scripts draft for each of several texts, by the first that begins alike.
type scripts []*script

// Draft implements draft.Drafter.
func (all scripts) Draft(text []int, n int) []int {
	for _, s := range all {
		if len(text) <= len(s.text) && slices.Equal(text, s.text[:len(text)]) {
			return s.Draft(text, n)
		}
	}
	return nil
}
