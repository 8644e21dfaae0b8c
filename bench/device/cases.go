package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"amkc/runtime/host"
)

// caseKinds are the kinds of cases that passes compares.
var caseKinds = map[string]func(*comparer) error{
	"prompts":   (*comparer).prompts,
	"rows":      (*comparer).rows,
	"drafts":    (*comparer).drafts,
	"sequences": (*comparer).sequences,
	"mixed":     (*comparer).mixed,
	"aborts":    (*comparer).aborts,
}

// rowCounts are the numbers of rows that cases of rows are about.
var rowCounts = []int{1, 2, 3, 5, 8}

// prompts reads a text to its end in parts of random lengths, sometimes after random tokens that are discarded.
func (c *comparer) prompts() error {
	t, err := c.enter()
	if err != nil {
		return err
	}
	first := c.s.Position()
	if n := partOf(c.rng, len(t.ids)-first); c.rng.IntN(2) == 0 {
		if _, err := c.s.Feed(c.ctx, randomIDs(c.rng, n, c.s.Info().Vocab), nil); err != nil {
			return err
		}
		if err := c.s.Rewind(first); err != nil {
			return err
		}
		c.Drafts++
	}
	for at := first; at < len(t.ids); {
		n := partOf(c.rng, len(t.ids)-at)
		if err := c.read(t, n, c.rng.IntN(3) > 0 || at+n == len(t.ids)); err != nil {
			return err
		}
		at += n
	}
	c.count("prompts")
	return c.save()
}

// rows reads some of a text in parts of as many tokens each. Some parts are a token and drafts, of which those from
// some on are wrong: the rows in front of them must not notice, and are kept.
func (c *comparer) rows() error {
	t, err := c.enter()
	if err != nil {
		return err
	}
	rows := rowCounts[c.rng.IntN(len(rowCounts))]
	for range 1 + c.rng.IntN(6) {
		left := len(t.ids) - c.s.Position()
		if left == 0 {
			break
		}
		n := min(rows, left)
		if right := 1 + c.rng.IntN(n); right < n && c.rng.IntN(2) == 0 {
			err = c.readDrafted(t, n, right)
		} else {
			err = c.read(t, n, true)
		}
		if err != nil {
			return err
		}
	}
	c.count(fmt.Sprintf("rows of %d", rows))
	return c.save()
}

// readDrafted reads the next tokens of a text, of which n are right, and keeps those.
func (c *comparer) readDrafted(t *text, n, right int) error {
	at, vocab := c.s.Position(), c.s.Info().Vocab
	ids := slices.Clone(t.ids[at : at+n])
	copy(ids[right:], randomIDs(c.rng, n-right, vocab))
	if c.rng.IntN(2) == 0 { // one wrong draft, and right ones after it
		copy(ids[right:], t.ids[at+right:at+n])
	}
	if ids[right] == t.ids[at+right] {
		ids[right] = (ids[right] + 1) % vocab
	}
	_, err := c.s.Feed(c.ctx, ids, func(position int, logits []float32) error {
		if position < at+right {
			c.compare(hashOf(logits) == t.logits[position], position, "of %d drafts from %d on, %d right", n-1, at+1,
				right-1)
		}
		return nil
	})
	c.Parts++
	c.Tokens += n
	c.Drafts++
	if err != nil {
		return err
	}
	return c.s.Rewind(at + right)
}

// drafts continues a text by the kernel's own choices, once token by token and once with drafts, right ones, wrong ones
// and garbage: the same tokens must come.
func (c *comparer) drafts() error {
	t, err := c.enter()
	if err != nil {
		return err
	}
	at, info := c.s.Position(), c.s.Info()
	prompt := t.ids[at : at+1+c.rng.IntN(min(9, len(t.ids)-at))]
	n := 1 + c.rng.IntN(min(40, info.MaxSeq-at-len(prompt)+1))
	// Token by token, the prompt too.
	var want []int
	for _, id := range prompt {
		next, err := c.s.Feed(c.ctx, []int{id}, nil)
		if err != nil {
			return err
		}
		want = []int{next}
	}
	if n > 1 {
		rest, err := c.s.Generate(c.ctx, want[0], n-1, nil, nil)
		if err != nil {
			return err
		}
		want = append(want, rest...)
	}
	if err := c.s.Rewind(at); err != nil {
		return err
	}
	before := c.s.Drafts().Passes
	c.s.SetDrafter(&script{rng: c.aside(), text: slices.Concat(prompt, want), vocab: info.Vocab})
	got, err := c.s.Complete(c.ctx, prompt, n, nil, nil)
	c.s.SetDrafter(nil)
	if err != nil {
		return err
	}
	c.Drafts += c.s.Drafts().Passes - before
	c.compare(len(got.IDs) == n, at, "%d tokens were chosen with drafts, and %d were asked for", len(got.IDs), n)
	for i := range min(n, len(got.IDs)) {
		c.compare(got.IDs[i] == want[i], at+len(prompt)-1+i, "with drafts, token %d was chosen, and %d without",
			got.IDs[i], want[i])
	}
	c.count("drafts")
	return c.s.Rewind(at + len(prompt)) // what follows is not the text
}

// A script drafts what it knows to be right, with mistakes, or garbage.
type script struct {
	rng   *rand.Rand
	text  []int // the prompt and what follows it
	vocab int

	prompt int      // tokens of it, where several texts are continued
	logits []uint64 // hashes of those that each token after it was chosen by, the same
}

// Draft implements draft.Drafter.
func (d *script) Draft(text []int, n int) []int {
	known := d.text[min(len(text), len(d.text)):]
	ids := slices.Clone(known[:min(n, len(known))])
	switch c := d.rng.IntN(4); {
	case c == 0 || len(ids) == 0:
		return randomIDs(d.rng, 1+d.rng.IntN(n), d.vocab)
	case c == 1:
		i := d.rng.IntN(len(ids))
		ids[i] = (ids[i] + 1 + d.rng.IntN(d.vocab-1)) % d.vocab
	}
	return ids[:1+d.rng.IntN(len(ids))]
}

// sequences follows texts in passes of several sequences, each from a random beginning on, which join and leave at any
// time. Each text is a case.
func (c *comparer) sequences() error {
	c.in = -1 // a batch takes the cache for its own
	b := c.s.NewBatch(host.BatchOptions{Prompt: []int{0, 1, 7, 64}[c.rng.IntN(4)]})
	left := min(c.left, 1+c.rng.IntN(3*c.s.Sequences()))
	type follower struct {
		text *text
		read int // tokens of the text that it has been given
	}
	live, took := map[int]*follower{}, time.Duration(0)
	for left > 0 || len(live) > 0 {
		for left > 0 && len(live) < c.s.Sequences() && c.rng.IntN(3) > 0 {
			t := c.texts[c.rng.IntN(len(c.texts))]
			f := &follower{t, partOf(c.rng, len(t.ids))}
			id, _, err := b.Admit(t.ids[:f.read], host.SequenceOptions{Logits: true,
				Most: 1 + c.rng.IntN(min(24, len(t.ids)-f.read+1))})
			if err != nil {
				return err
			}
			live[id] = f
			left--
			c.countSteps("sequences")
		}
		tokens, err := c.step(b, &took)
		if err != nil {
			return err
		}
		for _, got := range tokens {
			f := live[got.Sequence]
			at := f.read - 1
			same := hashOf(got.Logits) == f.text.logits[at] && got.ID == f.text.next[at]
			c.compare(same, at, "of sequence %d, one of %d in a pass", got.Sequence, len(tokens))
			if len(tokens) > 1 {
				c.Alongside++
			}
			if got.Ended || f.read == len(f.text.ids) || c.rng.IntN(40) == 0 {
				b.Retire(got.Sequence)
				delete(live, got.Sequence)
				continue
			}
			if err := b.Replace(got.Sequence, f.text.ids[f.read]); err != nil {
				return err
			}
			f.read++
		}
	}
	return nil
}
