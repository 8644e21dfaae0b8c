package serve

import (
	"context"
	"errors"

	"amkc/text/sampling"
)

// An Engine decodes sequences, each at its own position. The server owns it: one goroutine at a time calls it.
//
// A sequence is admitted with its prompt, returns tokens as events of Step, and is retired. It continues with the token
// of its last event, or with the one set by Replace.
type Engine interface {
	Limits() Limits
	// Chooses reports whether the engine chooses tokens by options, to those that a [sampling.Sampler] of them chooses;
	// where masked, among those that it is told, and with logits, of which it gives the logits too. Otherwise it
	// returns logits.
	Chooses(o *sampling.Options, masked, logits bool) bool
	// Admit takes a prompt, which is not empty, has ids below Limits().Vocab and fits Limits().MaxSeq. It decodes
	// nothing. There are at most Limits().Sequences at a time. cached is the number of tokens of the prompt that need
	// not be decoded, because rows of an earlier sequence are available; results are the same to the bit. With Echo it
	// is 0.
	Admit(prompt []int, o Options) (s Sequence, cached int, err error)
	// Step does a bounded amount of work: a part of prompts, or a few tokens of sequences. A step that only reads
	// prompts has no events. Events of a sequence are in order. After an error the caller must retire all sequences;
	// others may be admitted afterwards, unless it is ErrLost.
	Step(ctx context.Context) ([]Event, error)
	// Unread is the number of tokens of a sequence's prompt that are not decoded yet; 0 from its first token on.
	Unread(s Sequence) int
	// Allow sets the tokens among which the next one of a sequence is chosen; nil means all. It is called before the
	// next Step, for sequences that were admitted with Masked.
	Allow(s Sequence, allowed sampling.Mask)
	// Replace sets the token with which a sequence continues. It is called after the event of the token that it
	// replaces and before the next Step, for sequences that were admitted with Logits and without Sampling.
	Replace(s Sequence, token int)
	// Hold suspends a sequence while held is true. The others continue.
	Hold(s Sequence, held bool)
	// Retire ends a sequence in any state.
	Retire(s Sequence)
}

// ErrLost is the error of a Step after which the engine cannot decode again, for example after a GPU fault. The server
// exits with it, so that its service manager restarts it.
var ErrLost = errors.New("the engine is lost until the process is started again")

// Limits are what an engine can hold.
type Limits struct {
	Vocab     int // ids go from 0 to Vocab-1
	MaxSeq    int // positions of a sequence: a prompt of P tokens may be followed by up to MaxSeq-P+1
	Hidden    int // elements of a hidden state
	Sequences int // at a time
}

// A Sequence identifies an admitted sequence of an engine. The number may be reused once the sequence is retired.
type Sequence int

// Options of a sequence.
type Options struct {
	Logits bool // events have logits
	State  bool // return the last hidden state after the prompt, in one event, and no token
	Echo   bool // each token of the prompt but the first is an event too, with the logits before it

	// Limits that let an engine decode no more than necessary: the maximum number of tokens, 0 if not known, and ids
	// that end a sequence without logits.
	Most int
	Ends []int

	// Sampling are the options with which the engine chooses tokens, accepted by Chooses. Nil: [sampling.Greedy], or
	// with Logits the token set by Replace after each step.
	Sampling *sampling.Options
	// Masked says that Allow may be called; then there is one event a step. Allowed are the tokens among which the
	// first one is chosen; nil: all.
	Masked  bool
	Allowed sampling.Mask
}

// An Event is a token of a sequence.
type Event struct {
	Sequence Sequence
	Token    int       // what the engine has chosen
	Given    bool      // it is a token of the prompt, with logits, and the sequence continues
	Logits   []float32 // [Vocab], owned by the receiver; nil if not requested
	State    []float32 // [Hidden], valid until the next Step; nil without Options.State
	Err      error     // the logits leave no token to choose: the sequence must be retired
}
