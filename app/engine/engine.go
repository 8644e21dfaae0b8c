// Package engine adapts a session to an engine of package serve, for as many sequences at a time as passes of the build
// take. It must not know where requests come from.
package engine

import (
	"context"
	"fmt"
	"time"

	"amkc/app/serve"
	"amkc/runtime/driver"
	"amkc/runtime/host"
	"amkc/text/sampling"
)

// Served limits the work of one step of a server. A launch alone costs 50 to 150 µs, a tenth of a token of a small
// model or more, so it has several steps. Requests that arrive meanwhile, and the tokens of the launch, wait for its
// end.
func Served() host.BatchOptions { return host.BatchOptions{Steps: 32, Within: 8 * time.Millisecond} }

// New returns an engine that decodes with a session, which decodes nothing else meanwhile. The tokens of a sequence are
// the same with any build and alongside any other sequences.
func New(s *host.Session, o host.BatchOptions) serve.Engine {
	facts := s.Facts()
	limits := serve.Limits{Vocab: facts.Model.Vocab, MaxSeq: facts.Model.MaxSeq, Hidden: facts.Model.Hidden,
		Sequences: s.Sequences()}
	return &batch{of: s.NewBatch(o), limits: limits}
}

// A batch is an engine of a batch of sequences.
type batch struct {
	of      *host.Batch
	limits  serve.Limits
	refused error // of a token that was to go on with, until the next step says so
}

func (e *batch) Limits() serve.Limits { return e.limits }

func (e *batch) Chooses(o *sampling.Options, _, _ bool) bool { return o.ByKernel() }

func (e *batch) Admit(prompt []int, o serve.Options) (s serve.Sequence, cached int, err error) {
	id, cached, err := e.of.Admit(prompt, host.SequenceOptions{Most: o.Most, Stops: o.Ends, Logits: o.Logits,
		Echo: o.Echo, State: o.State, Sampling: o.Sampling, Masked: o.Masked, Allowed: o.Allowed})
	return serve.Sequence(id), cached, err
}

func (e *batch) Step(ctx context.Context) ([]serve.Event, error) {
	if err := e.refused; err != nil {
		e.refused = nil
		return nil, err
	}
	tokens, err := e.of.Step(ctx)
	if driver.IsSticky(err) {
		err = fmt.Errorf("%w: %w", serve.ErrLost, err)
	}
	if err != nil {
		return nil, err
	}
	events := make([]serve.Event, len(tokens))
	for i, t := range tokens {
		events[i] = serve.Event{Sequence: serve.Sequence(t.Sequence), Token: t.ID, Given: t.Given, Logits: t.Logits,
			State: t.State, Err: t.Err}
	}
	return events, nil
}

func (e *batch) Unread(s serve.Sequence) int { return e.of.Unread(int(s)) }

func (e *batch) Replace(s serve.Sequence, token int) {
	if err := e.of.Replace(int(s), token); err != nil {
		e.refused = err
	}
}

func (e *batch) Allow(s serve.Sequence, allowed sampling.Mask) { e.of.Allow(int(s), allowed) }

func (e *batch) Hold(s serve.Sequence, held bool) { e.of.Hold(int(s), held) }

func (e *batch) Retire(s serve.Sequence) { e.of.Retire(int(s)) }
