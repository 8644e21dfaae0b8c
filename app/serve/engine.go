package serve

import (
	"context"

	"amkc/text/sampling"
)

// An Engine decodes sequences, each at a position of its own. The server owns it: one goroutine at a time calls it.
//
// A sequence is admitted with its prompt, gives tokens as events of Step, and is retired. It goes on with the token of
// its last event, or with the one that Replace has put in its place.
type Engine interface {
	Limits() Limits
	// Chooses reports whether the engine chooses tokens by options, to those that a [sampling.Sampler] of them chooses;
	// where masked, among those that it is told, and with logits, of which it gives the logits too. What it does not
	// choose it gives the logits of.
	Chooses(o *sampling.Options, masked, logits bool) bool
	// Admit takes a prompt, which is not empty, has ids below Limits().Vocab and fits Limits().MaxSeq. It decodes
	// nothing. There are at most Limits().Sequences at a time. cached is how many tokens of the prompt need not be
	// decoded, as rows of an earlier sequence are there; that changes no bit of what follows. With Echo it is 0.
	Admit(prompt []int, o Options) (s Sequence, cached int, err error)
	// Step does a bounded piece of work: a part of prompts, a token or a few of sequences. A step that only reads
	// prompts has no events. Events of one sequence come in their order. With an error, the sequences that it has are
	// to be retired; others may be admitted afterwards.
	Step(ctx context.Context) ([]Event, error)
	// Allow says which tokens the next one of a sequence is chosen among; nil: all. It is called before the next Step,
	// for sequences that were admitted with Masked.
	Allow(s Sequence, allowed sampling.Mask)
	// Replace says which token a sequence goes on with. It is called after the event of the token that it replaces and
	// before the next Step, for sequences that were admitted with Logits and without Sampling.
	Replace(s Sequence, token int)
	// Hold makes a sequence sit out steps, for as long as it is held. The others go on.
	Hold(s Sequence, held bool)
	// Retire ends a sequence, whatever it has come to.
	Retire(s Sequence)
}

// Limits are what an engine can hold.
type Limits struct {
	Vocab     int // ids go from 0 to Vocab-1
	MaxSeq    int // positions of a sequence: a prompt of P tokens may be followed by up to MaxSeq-P+1
	Hidden    int // elements of a hidden state
	Sequences int // at a time
}

// A Sequence is what an engine calls one that it has admitted. It may be used again once it is retired.
type Sequence int

// Options of a sequence.
type Options struct {
	Logits bool // events have logits
	State  bool // the last hidden state after the prompt is wanted, in one event, and no token
	Echo   bool // of the prompt each token but the first is an event too, with the logits before it

	// What is known of the end, so that an engine decodes no more than it must: tokens that are wanted at most, 0 if
	// that is not known, and ids that end a sequence without logits.
	Most int
	Ends []int

	// Sampling says how the engine chooses tokens: options that it Chooses by. Nil: by [sampling.Greedy], or with
	// Logits as Replace says after each step.
	Sampling *sampling.Options
	// Masked says that Allow may be called: there is one event a step. Allowed are the tokens that the first one is
	// chosen among; nil: all.
	Masked  bool
	Allowed sampling.Mask
}

// An Event is a token of a sequence.
type Event struct {
	Sequence Sequence
	Token    int       // what the engine has chosen
	Given    bool      // it is one of the prompt instead, with logits, and the sequence goes on anyhow
	Logits   []float32 // [Vocab], the receiver's to keep; nil where they are not wanted
	State    []float32 // [Hidden], valid until the next Step; nil without Options.State
	Err      error     // of logits that leave this sequence no token: it is to be retired
}
