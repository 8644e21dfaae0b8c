package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"amkc/text/draft"
	"amkc/text/sampling"
)

// Sequences is the number of sequences of a pass of the build, at least 1.
func (s *Session) Sequences() int { return s.facts.Sequences() }

// A Batch decodes several sequences of a session, each with its own position and region of the cache. They join and
// leave between steps. The tokens of a sequence depend only on its prompt, to the bit, and not on other sequences: a
// single sequence is decoded by the kernel of one token, several by passes that read the weights once for all. With a
// drafter, passes of several rows verify drafts (sequences_drafts.go), which changes no token.
//
// A sequence is admitted with its prompt, returns tokens as results of [Batch.Step], and is retired. The cache of its
// region stays until another sequence needs the region, and a prompt with the same beginning reuses it
// (sequences_prefix.go). While a batch is in use, the session must not decode anything else.
type Batch struct {
	s     *Session
	o     BatchOptions
	slots []slot // one for each region of the cache
	order []int  // of the slots that are taken: that in which their sequences were admitted

	step     map[bool]time.Duration // of the last launch without drafts, of several sequences and of one
	decoding time.Duration          // that the last step with results took, less the reading of prompts
	shortest bool                   // the next step reads the shortest prompt first
	retired  int                    // sequences, so far
}

// BatchOptions limit the work of a step of a batch. The zero value keeps steps short.
type BatchOptions struct {
	Steps int // of a launch, if no sequence wants logits; up to 32, and 0 means 1
	// Within limits the time of a launch of several steps, because sequences join between launches. A launch has no
	// more steps than each of its sequences has returned tokens, so that the first tokens arrive at once, and takes a
	// quarter of Pause at most while a prompt is read. 0: only Steps limits it.
	Within time.Duration
	// Prompt is the number of prompt tokens that a step reads. 0: as many as a launch takes, and as fit into Pause if
	// other sequences wait for their next tokens.
	Prompt int
	// Pause limits the time of a step that reads prompts while other sequences wait for their next tokens, if Prompt is
	// 0. How many tokens that is depends on how long earlier parts took. A step reads at least one tile of the kernel
	// for prompts, 64 tokens, or 8 without that kernel. 0 means [DefaultPause].
	Pause time.Duration
	// Drafter predicts the continuation of sequences. It is not used if nil, or if the build has no kernel that
	// verifies drafts.
	Drafter draft.Drafter
}

// DefaultPause is the default of [BatchOptions.Pause].
const DefaultPause = 50 * time.Millisecond

// SequenceOptions are the options of a sequence.
type SequenceOptions struct {
	// Most is the maximum number of tokens returned; 0: one more than there are positions after the prompt.
	Most int
	// Stops are ids that end the sequence. A caller that chooses tokens must check for them.
	Stops []int
	// Logits are wanted with each token. Then launches have one step.
	Logits bool
	// Echo requests the prompt too: each of its tokens except the first is a result, before the chosen ones, with the
	// logits before it. The whole prompt is decoded, without reusing the cache.
	Echo bool
	// State requests the last hidden state after the prompt. Then the sequence has one result, with the state and no
	// token.
	State bool
	// Sampling says how the kernel chooses, if it can; see [sampling.Options.ByKernel]. nil: the largest logit, or with
	// Logits the token passed to [Batch.Replace].
	Sampling *sampling.Options
	// Masked says that [Batch.Allow] may be called. Then launches have one step.
	Masked bool
	// Allowed are the tokens among which the first one is chosen, and imply Masked; nil: all. [Batch.Allow] sets those
	// of later tokens.
	Allowed sampling.Mask
}

// A Token is what a sequence of a batch has given.
type Token struct {
	Sequence int
	ID       int       // what the kernel has chosen
	Given    bool      // it is one of the prompt instead, and the sequence goes on anyhow
	Logits   []float32 // [vocab], if they are wanted; the receiver's to keep
	State    []float32 // [hidden], of a sequence that asks for it; the receiver's to keep
	Ended    bool      // the sequence gives no more: the token is a stop, or the last of those that were asked for
	Err      error     // there is no token to choose, and the sequence has ended: a [sampling.LogitsError]
}

// A slot is a region of the cache, and the sequence that is in it.
type slot struct {
	taken    bool
	since    int     // how many sequences had been retired when its last one was
	held     bool    // it sits out steps
	ids      []int   // whose rows the region has
	rest     []int   // to be decoded next: what is left of the prompt, or the last token
	left     int     // tokens that the sequence may still give
	given    int     // tokens that it has given
	echoed   []Token // of the prompt, that no step has returned
	choosing *choosing
	pace     draft.Pace
	SequenceOptions
}

// goes reports whether a step has a token to decode after which the sequence gives one.
func (l *slot) goes() bool { return l.taken && !l.held && l.left > 0 && len(l.rest) == 1 }

// replaced reports whether someone else chooses the tokens of a sequence, after each step.
func (l *slot) replaced() bool { return l.Logits && l.Sampling == nil }

// single reports whether no step may give more than one token of a sequence.
func (l *slot) single() bool { return l.replaced() || l.Masked }

// NewBatch returns a batch without sequences.
func (s *Session) NewBatch(o BatchOptions) *Batch {
	o.Steps = min(max(1, o.Steps), maxSteps)
	if o.Pause <= 0 {
		o.Pause = DefaultPause
	}
	s.script = nil
	return &Batch{s: s, o: o, slots: make([]slot, s.Sequences()), step: map[bool]time.Duration{}}
}

// ErrFull says that a batch has as many sequences as the build's passes take.
var ErrFull = errors.New("the batch has as many sequences as passes of the build take")

// Admit adds a sequence, and decodes nothing. id identifies it in results, and may be reused once the sequence is
// retired. cached is the number of tokens of the prompt that need not be decoded. Errors are [ErrFull], [ErrClosed],
// [PositionError] and [TokenError].
func (b *Batch) Admit(prompt []int, o SequenceOptions) (id, cached int, err error) {
	maxSeq := b.s.info.MaxSeq
	most := maxSeq - len(prompt) + 1 // the last token that is chosen takes no position
	switch {
	case b.s.closed:
		return 0, 0, ErrClosed
	case len(prompt) == 0:
		return 0, 0, fmt.Errorf("no tokens to decode")
	case o.Most < 0 || o.Most > most || most < 1:
		return 0, 0, &PositionError{Steps: len(prompt) + max(1, o.Most) - 1, MaxSeq: maxSeq}
	case o.Most > 0:
		most = o.Most
	}
	o.Masked = o.Masked || o.Allowed != nil
	if o.Sampling != nil && !o.Sampling.ByKernel() {
		return 0, 0, fmt.Errorf("the kernel does not choose by %v: want logits", o.Sampling)
	}
	if err := b.s.valid(prompt...); err != nil {
		return 0, 0, err
	}
	if id, cached = b.place(prompt, o.Echo); id < 0 {
		return 0, 0, ErrFull
	}
	l := &b.slots[id]
	*l = slot{taken: true, ids: l.ids[:cached], rest: slices.Clone(prompt[cached:]), left: most, SequenceOptions: o}
	if !l.replaced() {
		if o.Sampling == nil {
			o.Sampling = new(sampling.Greedy())
		}
		l.choosing = choosingOf(o.Sampling, sampling.Text{Prompt: prompt, Allowed: o.Allowed}, id, o.Masked)
	}
	if err := b.borrow(id); err != nil {
		b.leave(id)
		return 0, 0, err
	}
	b.order = append(b.order, id)
	return id, len(l.ids), nil
}

// Replace sets the token with which a sequence continues, instead of the last that it returned. It is for sequences
// with Logits and without Sampling, before the next step.
func (b *Batch) Replace(id, token int) error {
	if err := b.s.valid(token); err != nil {
		return err
	}
	if l := &b.slots[id]; l.taken && len(l.rest) == 1 {
		l.rest[0] = token
	}
	return nil
}

// Allow sets the tokens among which the next one of a sequence is chosen; nil means all. It is for sequences that were
// admitted with Masked, and holds for one step.
func (b *Batch) Allow(id int, allowed sampling.Mask) {
	if l := &b.slots[id]; l.choosing != nil {
		l.choosing.text.Allowed = allowed
	}
}

// Hold suspends a sequence while held is true: it reads nothing and returns nothing, and the others continue.
func (b *Batch) Hold(id int, held bool) { b.slots[id].held = held }

// Retire ends a sequence in any state.
func (b *Batch) Retire(id int) {
	b.leave(id)
	b.order = slices.DeleteFunc(b.order, func(i int) bool { return i == id })
}

// Unread is the number of tokens of a sequence's prompt that no step has decoded yet, 0 after the last.
func (b *Batch) Unread(id int) int {
	if l := &b.slots[id]; l.given == 0 {
		return len(l.rest)
	}
	return 0
}

// Step does a bounded amount of work: it reads parts of prompts, and decodes the next token, or a few, of each sequence
// whose prompt has been read; hidden states are computed one by one. A step that has only read prompts has no results.
// Results of a sequence are in order. Errors are those of [Session.Feed]. After an error every sequence is in its state
// before the step, or at the end of a part of its prompt.
func (b *Batch) Step(ctx context.Context) ([]Token, error) {
	if b.s.closed {
		return nil, ErrClosed
	}
	defer func() { b.s.region, b.s.position = 0, 0 }()
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	var live []int
	var states []Token
	for _, id := range b.order {
		switch l := &b.slots[id]; {
		case !l.goes():
		case l.State:
			b.enter(id)
			state, err := b.s.State(ctx, l.rest[0])
			if err != nil {
				return nil, err
			}
			states = append(states, Token{Sequence: id, State: state, Ended: true})
		default:
			live = append(live, id)
		}
	}
	var tokens []Token
	var err error
	drafted := b.drafts(live)
	switch {
	case len(live) == 0:
	case drafted != nil:
		tokens, err = b.verify(ctx, live, drafted)
	case len(live) == 1:
		tokens, err = b.alone(ctx, live[0])
	default:
		tokens, err = b.together(ctx, live)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range states { // with an error they would not have been given
		l := &b.slots[t.Sequence]
		l.ids, l.rest, l.left = append(l.ids, l.rest...), nil, 0
	}
	if len(states)+len(tokens) > 0 {
		b.decoding = time.Since(begun)
	}
	return slices.Concat(b.echoed(), states, tokens), nil
}

// enter makes the session stand in the region of a sequence. What it decodes on its own there it chooses nothing
// after.
func (b *Batch) enter(id int) { b.s.region, b.s.position, b.s.chooser = id, len(b.slots[id].ids), nil }
