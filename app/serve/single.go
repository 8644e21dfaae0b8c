package serve

import (
	"context"
	"errors"
	"slices"

	"amkc/text/sampling"
)

// A Decoder decodes one sequence: the reference VM of amkc, or a session on a GPU. It may be a [sampling.Chooser].
type Decoder interface {
	// Feed decodes ids from the decoder's position on, and returns the token chosen after the last. onLogits, if not
	// nil, gets the logits [vocab] after each; the slice is valid during the call.
	Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int, err error)
	// State decodes an id at the decoder's position, and returns the last hidden state after it, valid until the next
	// call.
	State(ctx context.Context, id int) ([]float32, error)
	// Rewind moves back to an earlier position, and keeps what was decoded before it.
	Rewind(position int) error
}

// single is an engine of one sequence at a time. What the decoder's cache holds of a sequence stays when it is retired,
// for the next one that begins with the same tokens.
type single struct {
	decoder Decoder
	limits  Limits
	chunk   int // tokens of a prompt in a step

	cached  []int // tokens that are decoded, whose rows the cache has
	busy    bool
	held    bool
	rest    []int // to be decoded next: what is left of the prompt, or the last token
	options Options
	text    sampling.Text
}

// NewSingle returns an engine for one sequence at a time, for a decoder at position 0. A step reads up to chunk tokens
// of a prompt, and a sequence cannot be cancelled in between.
func NewSingle(d Decoder, limits Limits, chunk int) Engine {
	limits.Sequences = 1
	return &single{decoder: d, limits: limits, chunk: chunk}
}

var errBusy = errors.New("the engine has a sequence already, and decodes one at a time")

var errChoice = errors.New("the decoder does not choose tokens by these options")

func (e *single) Limits() Limits { return e.limits }

// Chooses: where a decoder gives logits, who has them chooses.
func (e *single) Chooses(o *sampling.Options, masked, logits bool) bool {
	return !logits && sampling.Chooses(e.decoder, o, masked)
}

func (e *single) Admit(prompt []int, o Options) (s Sequence, cached int, err error) {
	if e.busy {
		return 0, 0, errBusy
	}
	for !o.Echo && cached < len(e.cached) && cached < len(prompt)-1 && prompt[cached] == e.cached[cached] {
		cached++ // but for the last token, after which the logits are wanted
	}
	if err := e.decoder.Rewind(cached); err != nil {
		return 0, 0, err
	}
	if o.Sampling == nil && !o.Logits {
		o.Sampling = new(sampling.Greedy())
	}
	if o.Sampling != nil && !o.State && !e.Chooses(o.Sampling, o.Masked, o.Logits) {
		return 0, 0, errChoice
	}
	e.cached = e.cached[:cached]
	e.busy, e.held, e.rest, e.options = true, false, slices.Clone(prompt[cached:]), o
	e.text = sampling.Text{Prompt: slices.Clone(prompt), Allowed: o.Allowed}
	return 0, cached, nil
}

func (e *single) Step(ctx context.Context) ([]Event, error) {
	if !e.busy || e.held || len(e.rest) == 0 {
		return nil, nil
	}
	n := min(len(e.rest), e.chunk)
	last := n == len(e.rest)
	if last && n > 1 && (e.options.Logits || e.options.State || e.options.Echo) {
		n, last = n-1, false // what is wanted is wanted of the last token alone
	}
	part := e.rest[:n]
	if last && e.options.State {
		return e.state(ctx)
	}
	var keep func(int, []float32) error
	var rows [][]float32
	if last && e.options.Logits || !last && e.options.Echo {
		keep = func(_ int, logits []float32) error {
			rows = append(rows, slices.Clone(logits))
			return nil
		}
	}
	if last && !e.options.Logits && !sampling.Delegate(e.decoder, e.options.Sampling, e.text) {
		return nil, errChoice
	}
	// Until it has gone well nobody knows which rows the cache has.
	before := e.cached
	e.cached = nil
	next, err := e.decoder.Feed(ctx, part, keep)
	var none *sampling.LogitsError
	switch {
	case errors.As(err, &none):
		return []Event{{Err: err}}, nil
	case err != nil:
		return nil, err
	}
	e.cached = append(before, part...)
	if e.rest = e.rest[n:]; !last {
		return e.given(part, rows), nil
	}
	e.rest, e.text.Output = append(e.rest, next), append(e.text.Output, next)
	event := Event{Token: next}
	if rows != nil {
		event.Logits = rows[0]
	}
	return []Event{event}, nil
}

// given are events of the tokens after those of a part of a prompt, by the logits after them.
func (e *single) given(part []int, rows [][]float32) (events []Event) {
	for i, row := range rows {
		token := e.rest[0]
		if i+1 < len(part) {
			token = part[i+1]
		}
		events = append(events, Event{Token: token, Given: true, Logits: row})
	}
	return events
}

// state decodes the last token of a prompt.
func (e *single) state(ctx context.Context) ([]Event, error) {
	before := e.cached
	e.cached = nil
	state, err := e.decoder.State(ctx, e.rest[0])
	if err != nil {
		return nil, err
	}
	e.cached, e.rest = append(before, e.rest[0]), nil
	return []Event{{State: state}}, nil
}

func (e *single) Unread(Sequence) int {
	if len(e.text.Output) > 0 {
		return 0
	}
	return len(e.rest)
}

func (e *single) Allow(_ Sequence, allowed sampling.Mask) { e.text.Allowed = allowed }

func (e *single) Replace(_ Sequence, token int) { e.rest = []int{token} }

func (e *single) Hold(_ Sequence, held bool) { e.held = held }

func (e *single) Retire(Sequence) { e.busy, e.rest = false, nil }
