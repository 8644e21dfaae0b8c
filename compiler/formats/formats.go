// Package formats searches for the format of each matrix of a model, by the time that a step gains and by its measured
// cost in quality.
//
// It identifies matrices by name, and formats by their spelling in --weights. Callers measure and predict the effect of
// a configuration. It imports compiler/quality.
package formats

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"amkc/compiler/quality"
)

// Options are the parameters of a search.
type Options struct {
	Stacks  [][]string // names of matrices; those of one have one format
	Formats []string   // that are tried for each, as --weights spells them
	Most    float64    // divergence that is allowed, in nats: of the mean over predictions
	// Predict returns the time of a step with --weights spec, which may be empty.
	Predict func(spec string) (Step, error)
	// Measure compares the model with the unquantised model.
	Measure func(ctx context.Context, spec string) (*quality.Report, error)
	// Tell is called with each configuration that was measured; may be nil.
	Tell func(Tried)
}

// A Step is a predicted step.
type Step struct {
	US    float64 `json:"predicted_us"`
	Bytes int64   `json:"bytes_per_token"`
}

// A Tried is a configuration that was measured.
type Tried struct {
	Weights string `json:"weights"` // as --weights takes it; empty: none
	Change  string `json:"change"`  // the part of it that is tried
	Step
	Divergence float64 `json:"kl"` // mean, in nats
	Agreement  float64 `json:"top1_agreement"`
	Perplexity float64 `json:"perplexity,omitempty"` // of the model as it is: absent if nothing was measured
	Accepted   bool    `json:"accepted"`
}

// A Result is the result of a search.
type Result struct {
	AsIs  Tried   `json:"as_is"` // without formats
	Alone []Tried `json:"alone"` // each matrix in each format on its own
	// Together are the configurations from the unquantised model to the last accepted one: each is the last accepted
	// one before it with another format of one matrix.
	Together []Tried `json:"together"`
	Best     Tried   `json:"best"`
}

// A move gives a stack a format.
type move struct {
	stack  int
	format string
	alone  *Tried
	worth  float64 // µs that a step gains, for a nat of divergence
}

// leastDivergence is the smallest that moves are compared by: below it, a text says nothing of the difference.
const leastDivergence = 1e-6

// Search measures each stack in each format alone. Then it applies formats one after another, those that gain the most
// time for their divergence first, as long as the total divergence is permitted. Errors of matrices do not simply add
// up, so each configuration is measured as a whole. The error is one of Predict, of Measure, or the cause of a
// cancelled context.
func Search(ctx context.Context, o Options) (*Result, error) {
	s := &searcher{o: o, chosen: make([]string, len(o.Stacks)), result: &Result{}}
	none, err := o.Predict("")
	if err != nil {
		return nil, err
	}
	moves, err := s.alone(ctx, none)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(b.worth, a.worth) })
	s.result.AsIs = Tried{Step: none, Agreement: 1, Perplexity: s.plain, Accepted: true}
	s.result.Best = s.result.AsIs
	for _, m := range moves {
		if err := s.apply(ctx, m); err != nil {
			return nil, err
		}
	}
	return s.result, nil
}

type searcher struct {
	o      Options
	chosen []string // the format of each stack; empty: as it is
	plain  float64  // the perplexity of the model as it is, once it is known
	result *Result
}

// alone measures every stack in every format on its own. What gains nothing is not a move: a matrix that stays as it
// is, or one whose bytes a step does not wait for.
func (s *searcher) alone(ctx context.Context, none Step) (moves []move, err error) {
	for i := range s.o.Stacks {
		for _, format := range s.o.Formats {
			spec := s.spec(i, format)
			step, err := s.o.Predict(spec)
			if err != nil {
				return nil, err
			}
			if step.US >= none.US {
				continue
			}
			t, err := s.try(ctx, spec, format, i, step)
			if err != nil {
				return nil, err
			}
			s.result.Alone = append(s.result.Alone, *t)
			moves = append(moves, move{stack: i, format: format, alone: t,
				worth: (none.US - step.US) / max(t.Divergence, leastDivergence)})
		}
	}
	return moves, nil
}

// apply makes a move, and takes it back if it gains nothing on top of those before it, or costs too much.
func (s *searcher) apply(ctx context.Context, m move) error {
	spec := s.spec(m.stack, m.format)
	step, err := s.o.Predict(spec)
	if err != nil || step.US >= s.result.Best.US {
		return err
	}
	t := m.alone // nothing else is chosen yet
	if spec != t.Weights {
		if t, err = s.try(ctx, spec, m.format, m.stack, step); err != nil {
			return err
		}
	}
	t.Accepted = t.Divergence <= s.o.Most
	s.result.Together = append(s.result.Together, *t)
	if t.Accepted {
		s.chosen[m.stack], s.result.Best = m.format, *t
	}
	return nil
}

func (s *searcher) try(ctx context.Context, spec, format string, stack int, step Step) (*Tried, error) {
	r, err := s.o.Measure(ctx, spec)
	if err != nil {
		return nil, err
	}
	s.plain = r.Perplexity.Against
	t := &Tried{Weights: spec, Change: items(s.o.Stacks[stack], format), Step: step, Divergence: r.KL.Mean,
		Agreement: r.Agreement, Perplexity: r.Perplexity.Model}
	if s.o.Tell != nil {
		s.o.Tell(*t)
	}
	return t, nil
}

// spec is what is chosen, with another format for one stack.
func (s *searcher) spec(stack int, format string) string {
	var all []string
	for i, names := range s.o.Stacks {
		is := s.chosen[i]
		if i == stack {
			is = format
		}
		if is != "" {
			all = append(all, items(names, is))
		}
	}
	return strings.Join(all, ",")
}

// items give matrices a format.
func items(names []string, format string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = name + "=" + format
	}
	return strings.Join(all, ",")
}
