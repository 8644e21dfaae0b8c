package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"amkc/runtime/host"
	"amkc/text/draft"
	"amkc/text/sampling"
)

// A request is a prompt, how its tokens are chosen, and what comes of it alone.
type request struct {
	prompt   []int
	sequence host.SequenceOptions
	drawn    *sampling.Options // nil: the kernel chooses

	want   []int
	logits []uint64 // of drawn ones: the hashes of what each token was drawn from
}

// A guest is a request that is being decoded alongside others.
type guest struct {
	*request
	given   int
	sampler *sampling.Sampler // of drawn ones
	aborted bool              // a step was aborted while it was there
	wrong   bool
}

// sequencesSoak decodes rounds of requests.
type sequencesSoak struct {
	ctx  context.Context
	s    *host.Session
	plan sequencesPlan
	rng  *rand.Rand
	sequencesResult
}

// errCancelled is why steps are aborted.
var errCancelled = errors.New("cancelled on purpose")

// round makes requests, finds what comes of each alone, and then lets some of them arrive at random until a time, and
// at least as many as there are; those that are there then are decoded to their end.
func (k *sequencesSoak) round(until time.Time) error {
	// Without drawn ones a launch has several steps.
	drawn := k.rng.IntN(3)
	requests, err := k.requests(drawn)
	if err != nil {
		return err
	}
	o := host.BatchOptions{Steps: []int{1, 4, 32}[k.rng.IntN(3)], Prompt: []int{0, 5, 64}[k.rng.IntN(3)]}
	if facts := k.s.Facts(); facts.VerifiesDrafts(true) {
		o.Drafter = draft.NGrams{}
	}
	b := k.s.NewBatch(o)
	crowd := 1 + k.rng.IntN(4) // of 4 chances to arrive, how many are taken
	guests, took, arrived := map[int]*guest{}, time.Duration(0), 0
	open := func() bool { return arrived < len(requests) || time.Now().Before(until) }
	for open() || len(guests) > 0 {
		for ; len(guests) < k.Sequences && open() && k.rng.IntN(4) < crowd; arrived++ {
			if err := k.admit(b, guests, requests[k.rng.IntN(len(requests))]); err != nil {
				return err
			}
		}
		start := time.Now()
		tokens, err := k.step(b, took)
		switch {
		case errors.Is(err, errCancelled):
			k.Aborts++
			for _, g := range guests {
				g.aborted = true
			}
			continue
		case err != nil:
			return err
		}
		took = time.Since(start)
		if err := k.take(b, guests, tokens); err != nil {
			return err
		}
	}
	return nil
}

// step does a step, which is aborted somewhere now and then: took is how long the last one took.
func (k *sequencesSoak) step(b *host.Batch, took time.Duration) ([]host.Token, error) {
	if took == 0 || k.plan.aborts == 0 || k.rng.IntN(k.plan.aborts) > 0 {
		return b.Step(k.ctx)
	}
	ctx, cancel := context.WithCancelCause(k.ctx)
	defer cancel(nil)
	after := 1.2 * k.rng.Float64() * float64(took) // sometimes after its end
	defer time.AfterFunc(time.Duration(after), func() { cancel(errCancelled) }).Stop()
	return b.Step(ctx)
}

func (k *sequencesSoak) admit(b *host.Batch, guests map[int]*guest, r *request) error {
	g := &guest{request: r}
	if r.drawn != nil {
		var err error
		if g.sampler, err = sampling.New(*r.drawn, k.s.Info().Vocab, r.prompt); err != nil {
			return err
		}
	}
	id, cached, err := b.Admit(r.prompt, r.sequence)
	if err != nil {
		return err
	}
	if guests[id] != nil {
		return fmt.Errorf("sequence %d was admitted twice", id)
	}
	guests[id] = g
	k.Cached += cached
	return nil
}

// take compares the tokens of a step with what comes of each sequence alone, and lets sequences go that have ended, or
// at random.
func (k *sequencesSoak) take(b *host.Batch, guests map[int]*guest, tokens []host.Token) error {
	several := slices.ContainsFunc(tokens, func(t host.Token) bool { return t.Sequence != tokens[0].Sequence })
	for _, t := range tokens {
		g := guests[t.Sequence]
		if g == nil {
			continue // it has left in the middle of a launch
		}
		at := g.given
		id, same := t.ID, true
		if g.sampler != nil {
			choice, err := g.sampler.Next(t.Logits, nil)
			if err != nil {
				return err
			}
			if id = choice.ID; !t.Ended {
				if err := b.Replace(t.Sequence, id); err != nil {
					return err
				}
			}
			same = at < len(g.logits) && hashOf(t.Logits) == g.logits[at]
		}
		k.Tokens++
		if several {
			k.Alongside++
		}
		g.given++
		last := g.given == len(g.want)
		switch {
		case g.wrong:
		case at >= len(g.want) || id != g.want[at] || !same:
			k.differ(g, "token %d after a prompt of %d is not what it is alone", at, len(g.prompt))
		case t.Ended != last:
			k.differ(g, "a text of %d tokens has ended: %v after %d", len(g.want), t.Ended, g.given)
		}
		switch {
		case last || t.Ended:
			k.Finished++
			if g.aborted {
				k.AfterAbort++
			}
		case k.rng.IntN(200) == 0:
			k.Left++
		default:
			continue
		}
		if g.sampler != nil {
			k.Sampled++
		}
		b.Retire(t.Sequence)
		delete(guests, t.Sequence)
	}
	return nil
}

func (k *sequencesSoak) differ(g *guest, format string, args ...any) {
	g.wrong = true
	k.Differing++
	if k.Difference == "" {
		k.Difference = fmt.Sprintf("seed %d, text %d: ", k.Seed, k.Finished+k.Left) + fmt.Sprintf(format, args...)
	}
}

// requests makes the requests of a round, of which n in four are drawn, and decodes each alone.
func (k *sequencesSoak) requests(drawn int) ([]*request, error) {
	vocab := k.s.Info().Vocab
	var stems [3][]int // that prompts begin with
	for i := range stems {
		stems[i] = randomIDs(k.rng, k.plan.positions, vocab)
	}
	requests := make([]*request, k.plan.texts)
	for i := range requests {
		n := 1 + k.rng.IntN(k.plan.positions-1)
		if k.rng.IntN(2) == 0 {
			n = 1 + k.rng.IntN(min(n, 24))
		}
		r := &request{prompt: slices.Clone(stems[k.rng.IntN(len(stems))][:n])}
		own := k.rng.IntN(n + 1) // tokens at its end
		copy(r.prompt[n-own:], randomIDs(k.rng, own, vocab))
		r.sequence.Most = 1 + k.rng.IntN(k.plan.positions-n)
		if k.rng.IntN(4) < drawn {
			o := sampling.Greedy()
			o.Temperature, o.Seed = 0.5+k.rng.Float64(), k.rng.Uint64()
			if k.rng.IntN(2) == 0 {
				o.TopP, o.RepetitionPenalty = 0.9, 1.1
			}
			r.drawn, r.sequence.Logits = &o, true
		}
		if err := k.alone(r); err != nil {
			return nil, fmt.Errorf("text %d of the round, alone: %w", i, err)
		}
		requests[i] = r
	}
	return requests, nil
}

// alone decodes a request by the kernel of one token, the prompt too, and sometimes makes a token of it one that ends
// it.
func (k *sequencesSoak) alone(r *request) error {
	k.s.Reset()
	last := len(r.prompt) - 1
	for _, id := range r.prompt[:last] {
		if _, err := k.s.Feed(k.ctx, []int{id}, nil); err != nil {
			return err
		}
	}
	token := r.prompt[last]
	if r.drawn == nil {
		ids, err := k.s.Generate(k.ctx, token, r.sequence.Most, nil, nil)
		if err != nil {
			return err
		}
		r.want = ids
		if k.rng.IntN(3) == 0 {
			stop := ids[k.rng.IntN(len(ids))]
			r.sequence.Stops, r.want = []int{stop}, ids[:1+slices.Index(ids, stop)]
		}
		return nil
	}
	sampler, err := sampling.New(*r.drawn, k.s.Info().Vocab, r.prompt)
	if err != nil {
		return err
	}
	for range r.sequence.Most {
		if _, err := k.s.Feed(k.ctx, []int{token}, func(_ int, logits []float32) error {
			choice, err := sampler.Next(logits, nil)
			token = choice.ID
			r.logits = append(r.logits, hashOf(logits))
			return err
		}); err != nil {
			return err
		}
		r.want = append(r.want, token)
	}
	return nil
}
