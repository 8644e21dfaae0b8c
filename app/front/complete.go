// Package front is what amkc and launchers share of the verbs that decode: flags, how a completion is decoded, and how
// a server starts. It is copied into every emitted launcher, and must not know how models are compiled.
package front

import (
	"context"
	"errors"

	"amkc/app/prompts"
	"amkc/runtime/host"
	"amkc/runtime/progress"
	"amkc/text/draft"
	"amkc/text/sampling"
)

// A Decoder decodes one text.
type Decoder interface {
	sampling.Feeder
	sampling.Chooser
	Position() int
	// Complete decodes a prompt and up to n tokens after it, until one of stops, and gives each to emit.
	Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(id int) error) (host.Completion, error)
}

// A verifier is a Decoder that verifies drafts.
type verifier interface {
	Decoder
	sampling.Rewinder
	SetDrafter(d draft.Drafter) bool
	Drafts() draft.Stats
}

// A Watched session shows on a line how far it is with a long prompt.
type Watched struct {
	*host.Session
	Line interface {
		Show(progress.Step)
		Clear()
	}
}

// watch shows how far the session is with a prompt. unwatch ends that, also where not all of it has been read.
func (w Watched) watch() (unwatch func()) {
	w.SetProgress(progress.Reading(w.Line))
	return func() {
		w.Line.Clear()
		w.SetProgress(nil)
	}
}

// Feed is [host.Session.Feed].
func (w Watched) Feed(ctx context.Context, ids []int, onLogits func(int, []float32) error) (int, error) {
	defer w.watch()()
	return w.Session.Feed(ctx, ids, onLogits)
}

// Complete is [host.Session.Complete].
func (w Watched) Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(int) error) (host.Completion,
	error) {
	defer w.watch()()
	return w.Session.Complete(ctx, prompt, n, stops, emit)
}

// A Request says what is decoded.
type Request struct {
	Prompt   []int // of which the decoder has decoded as many as its position says
	Most     int   // tokens after it
	Stops    []int // that end the text
	Sampling sampling.Options
	Drafter  draft.Drafter // nil: none; only for a decoder that verifies drafts
	Vocab    int
}

// A Completion is what was decoded.
type Completion struct {
	host.Completion
	Found   bool              // a stop string: the text has ended before it, and the last id completes it
	Choices []sampling.Choice // where the decoder did not choose on its own
	Drafts  draft.Stats       // what drafts were good for
}

// Reason says why a text has ended.
func (c *Completion) Reason() string {
	switch {
	case c.Found:
		return "stop"
	case c.Stopped:
		return "eos"
	}
	return "length"
}

// ErrStop is what emit returns where a stop string is complete. [Complete] does not return it.
var ErrStop = errors.New("the text has ended before a stop string")

// Complete decodes what r says, and gives each token to emit, up to one for which that returns [ErrStop]. The decoder
// chooses the tokens if it can. If not, its logits are looked at here.
func Complete(ctx context.Context, s Decoder, r Request, emit func(id int) error) (Completion, error) {
	var ids []int // a launch may have chosen more before it ends
	done, err := complete(ctx, s, r, func(id int) error {
		ids = append(ids, id)
		return emit(id)
	})
	done.IDs = ids
	if done.Found = errors.Is(err, ErrStop); done.Found {
		err = nil
	}
	return done, err
}

func complete(ctx context.Context, s Decoder, r Request, emit func(id int) error) (done Completion, err error) {
	at, d := s.Position(), r.Drafter
	v, _ := s.(verifier)
	if d != nil && at > 0 {
		d = draft.After(r.Prompt[:at], d) // what was decoded before is a part of the prompt
	}
	if s.Choose(&r.Sampling, sampling.Text{Prompt: r.Prompt}) {
		if v != nil {
			v.SetDrafter(d)
		}
		if done.Completion, err = s.Complete(ctx, r.Prompt[at:], r.Most, r.Stops, emit); v != nil {
			done.Drafts = v.Drafts()
		}
		return done, err
	}
	sampler, err := sampling.New(r.Sampling, r.Vocab, r.Prompt)
	if err != nil {
		return done, err
	}
	chosen := func(c sampling.Choice) error {
		done.Choices = append(done.Choices, c)
		return emit(c.ID)
	}
	if v == nil {
		done.Stopped, err = sampling.Complete(ctx, s, sampler, r.Prompt[at:], r.Most, r.Stops, chosen)
	} else {
		done.Stopped, err = sampling.CompleteDrafted(ctx, v, sampler, r.Prompt[at:], r.Most, r.Stops, d, &done.Drafts,
			chosen)
	}
	return done, err
}

// Batch says how the prompts of a file are decoded, by an engine that takes a number of sequences at a time. Nobody
// waits for single tokens, so a launch has many steps.
func Batch(jobs []prompts.Job, sequences int, d draft.Drafter) host.BatchOptions {
	longest := 0
	for _, job := range jobs {
		longest = max(longest, len(job.IDs))
	}
	return host.BatchOptions{Steps: 16, Prompt: longest * sequences, Drafter: d}
}
