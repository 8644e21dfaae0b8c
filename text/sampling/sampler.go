package sampling

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// never is the score of a token that cannot be chosen.
var never = math.Inf(-1)

// A Mask is a set of allowed tokens: bit i%64 of word i/64 is that of token i. nil allows all.
type Mask []uint64

// NewMask returns the mask that allows some of a model's tokens.
func NewMask(vocab int, ids ...int) Mask {
	m := make(Mask, (vocab+63)/64)
	for _, id := range ids {
		m[id/64] |= 1 << (id % 64)
	}
	return m
}

func (m Mask) allows(id int) bool { return m == nil || id/64 < len(m) && m[id/64]>>(id%64)&1 != 0 }

// A Choice is the token of a position, with the requested log-probabilities: natural logarithms of the model's own
// distribution, before bias, penalties, masks, temperature and filters.
type Choice struct {
	ID      int     `json:"id"`
	LogProb float64 `json:"logprob"` // of ID
	// the most probable tokens, the lowest id first among equals; none that are impossible
	Top []LogProb `json:"top"`
}

// A LogProb is the log-probability of a token.
type LogProb struct {
	ID      int     `json:"id"`
	LogProb float64 `json:"logprob"`
}

// A Sampler chooses the tokens of one sequence. Only one goroutine may use it at a time.
type Sampler struct {
	o        Options
	vocab    int
	position int         // of the next token: how many came before it
	seen     map[int]int // how often the output has an id; 0 of those that only the prompt has
	scores   []float64
	kept     []candidate
	best     []candidate
}

// New returns a sampler for the continuation of a prompt at position 0. A negative id means no token. Errors are
// *OptionError.
func New(o Options, vocab int, prompt []int) (*Sampler, error) {
	if err := o.Check(vocab); err != nil {
		return nil, err
	}
	s := &Sampler{o: o, vocab: vocab, position: len(prompt), seen: map[int]int{}, scores: make([]float64, vocab)}
	for _, id := range prompt {
		if id >= 0 && id < vocab {
			s.seen[id] = 0
		}
	}
	return s, nil
}

// Next chooses the token that follows, among those that the mask allows, and counts it as output. logits are those of
// the position before it, [vocab]; they are not kept. With several rows of logits, as for drafts, call Next for one
// after another as long as it chooses the draft. A *LogitsError does not change the sampler.
func (s *Sampler) Next(logits []float32, allowed Mask) (Choice, error) {
	if err := s.check(logits); err != nil {
		return Choice{}, err
	}
	best := s.score(logits, allowed)
	if s.scores[best] == never {
		return Choice{}, &LogitsError{s.position, "no token is left to choose: each has a logit or a bias of -inf, " +
			"or is not allowed"}
	}
	c := Choice{ID: best}
	if s.o.Temperature != 0 {
		s.filter(s.scores[best])
		c.ID = pick(s.kept, s.o.Temperature, s.o.Seed, s.position)
	}
	if s.o.LogProbs >= 0 {
		c.LogProb, c.Top, s.best = logProbs(logits, c.ID, s.o.LogProbs, s.best)
	}
	s.Chose(c.ID)
	return c, nil
}

// Chose adds a token that the kernel chose: the next one is at the next position, and penalties count it.
func (s *Sampler) Chose(id int) {
	s.seen[id]++
	s.position++
}

// A LogitsError is the reason why no token can be chosen at a position.
type LogitsError struct {
	Position int // of the token to be chosen
	What     string
}

func (e *LogitsError) Error() string { return fmt.Sprintf("position %d: %s", e.Position, e.What) }

func (s *Sampler) check(logits []float32) error {
	if len(logits) != s.vocab {
		return &LogitsError{s.position, fmt.Sprintf("there are %d logits; want %d", len(logits), s.vocab)}
	}
	return checkLogits(logits, s.position)
}

// checkLogits checks those of which the token of a position is chosen.
func checkLogits(logits []float32, position int) error {
	for id, x := range logits {
		if x != x || x > math.MaxFloat32 {
			return &LogitsError{position, fmt.Sprintf("the logit of token %d is %v; want a number, or -inf", id, x)}
		}
	}
	return nil
}

// score applies bias, penalties and mask, and returns the token with the largest score, the lowest id among equals.
// Products are rounded before they are taken off: no fused operations, which only some machines would use.
func (s *Sampler) score(logits []float32, allowed Mask) (best int) {
	for id, x := range logits {
		s.scores[id] = float64(x)
	}
	for id, b := range s.o.Bias {
		s.scores[id] += b
	}
	for id, n := range s.seen {
		x := s.scores[id]
		if x < 0 {
			x = float64(x * s.o.RepetitionPenalty)
		} else {
			x = float64(x / s.o.RepetitionPenalty)
		}
		if n > 0 {
			x -= float64(s.o.FrequencyPenalty * float64(n))
			x -= s.o.PresencePenalty
		}
		s.scores[id] = x
	}
	for id := range s.scores {
		if !allowed.allows(id) {
			s.scores[id] = never
		}
		if s.scores[id] > s.scores[best] {
			best = id
		}
	}
	return best
}

// A Feeder decodes ids, and passes the logits after each to onLogits, if that is not nil.
type Feeder interface {
	Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int, err error)
}

// A Text has the inputs of a choice besides logits.
type Text struct {
	Prompt, Output []int
	Allowed        Mask // of the next token alone; nil: all
}

// Begins reports whether another text begins with this one.
func (t *Text) Begins(other *Text) bool {
	return len(t.Output) <= len(other.Output) && slices.Equal(t.Output, other.Output[:len(t.Output)]) &&
		slices.Equal(t.Prompt, other.Prompt)
}

// A Chooser chooses tokens itself, the same as a [Sampler] with the options.
type Chooser interface {
	// Chooses reports whether it can choose by options; where masked, among tokens that a text allows.
	Chooses(o *Options, masked bool) bool
	// Choose makes it choose the token after a text by options; all others by [Greedy]. It reports whether it can.
	// Where it cannot, it goes on as before.
	Choose(o *Options, text Text) bool
}

// Chooses is Chooser.Chooses for any decoder: one that is not a [Chooser] supports only [Greedy].
func Chooses(decoder any, o *Options, masked bool) bool {
	if c, can := decoder.(Chooser); can {
		return c.Chooses(o, masked)
	}
	return !masked && !o.NeedLogits()
}

// Delegate makes a decoder choose the token after a text by options, if it can.
func Delegate(decoder any, o *Options, text Text) bool {
	if c, can := decoder.(Chooser); can {
		return c.Choose(o, text)
	}
	return !o.NeedLogits() && text.Allowed == nil
}

// Complete decodes a prompt, of one id or more, and up to n tokens after it that s, a new sampler of that prompt,
// chooses. It gives each to emit, ends after one of stops, and reports whether it did. Every token takes a separate
// round, since its logits are needed before the next one. Errors are those of f, s and emit.
func Complete(ctx context.Context, f Feeder, s *Sampler, prompt []int, n int, stops []int,
	emit func(Choice) error) (stopped bool, err error) {
	ids := prompt
	if last := len(prompt) - 1; last > 0 {
		if _, err := f.Feed(ctx, prompt[:last], nil); err != nil {
			return false, err
		}
		ids = prompt[last:]
	}
	for range n {
		var c Choice
		_, err := f.Feed(ctx, ids, func(_ int, logits []float32) (err error) {
			c, err = s.Next(logits, nil)
			return err
		})
		if err != nil {
			return false, err
		}
		if err := emit(c); err != nil {
			return false, err
		}
		if slices.Contains(stops, c.ID) {
			return true, nil
		}
		ids = []int{c.ID}
	}
	return false, nil
}
