package explore

import (
	"context"
	"fmt"
	"slices"

	"amkc/compiler"
	"amkc/runtime/host"
	"amkc/runtime/sampling"
)

// drawn are the settings by which the kernel draws: a temperature alone, and each filter.
func drawn() map[string]sampling.Options {
	with := func(edit func(o *sampling.Options)) sampling.Options {
		o := sampling.Greedy()
		o.Temperature, o.Seed = 0.8, 7
		edit(&o)
		return o
	}
	return map[string]sampling.Options{
		"a temperature": with(func(*sampling.Options) {}),
		"top-k":         with(func(o *sampling.Options) { o.TopK = 5 }),
		"top-p":         with(func(o *sampling.Options) { o.TopP = 0.7 }),
		"min-p and a penalty": with(func(o *sampling.Options) {
			o.MinP, o.RepetitionPenalty = 0.1, 1.2
		}),
	}
}

// drawnTokens are drawn: the first behind the prompt, the others in one launch, whose second step counts what the first
// has chosen.
const drawnTokens = 3

// drawings has the kernel draw tokens, and the host from the logits of the same text.
func (a *attempt) drawings() error {
	prompt := a.ids(0, 2)
	settings := drawn()
	for _, name := range sorted(settings) {
		o := settings[name]
		err := a.open(host.Options{}, func(s *host.Session) error {
			s.Choose(&o, sampling.Text{Prompt: prompt})
			got, err := s.Complete(a.ctx, prompt, drawnTokens, nil, nil)
			if err != nil {
				return err
			}
			a.own("tokens drawn by "+name, fmt.Append(nil, got.IDs))
			want, err := a.drawOnHost(s, &o, prompt, len(got.IDs))
			if err != nil {
				return err
			}
			if !slices.Equal(got.IDs, want) {
				a.found("difference", "by %s the kernel drew %v, and the host draws %v from the same logits", name,
					got.IDs, want)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drawOnHost draws what follows a prompt.
func (a *attempt) drawOnHost(s *host.Session, o *sampling.Options, prompt []int, n int) (all []int, err error) {
	greedy := sampling.Greedy()
	s.Choose(&greedy, sampling.Text{})
	sampler, err := sampling.New(*o, a.facts.Model.Vocab, prompt)
	if err != nil {
		return nil, err
	}
	if err := s.Rewind(0); err != nil {
		return nil, err
	}
	_, err = sampling.Complete(a.ctx, s, sampler, prompt, n, nil, func(c sampling.Choice) error {
		all = append(all, c.ID)
		return nil
	})
	return all, err
}

// ends compares with the plain kernels of reference.cu: at the first positions, and around those where the variant
// changes.
func (a *attempt) ends() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		first := []int{0}
		for _, end := range s.Info().VariantEnds {
			first = append(first, max(0, min(end-1, s.Info().MaxSeq-2)))
		}
		for _, at := range slices.Compact(first) {
			report, err := s.CheckFrom(a.ctx, at, min(2, s.Info().MaxSeq-at))
			if err != nil {
				return err
			}
			for _, failure := range report.Failures {
				a.found("bound", "against the plain kernels: %s", failure)
			}
		}
		return nil
	})
}

// referencePositions are those at which stages are held to the reference VM.
var referencePositions = []int{0, 2}

// reference holds what stages publish to the reference VM, and notes it.
func (a *attempt) reference() error {
	b, err := a.packed()
	if err != nil {
		return err
	}
	return a.open(host.Options{}, func(s *host.Session) error {
		report, err := compiler.BisectAt(a.ctx, b, &noting{a, s}, referencePositions, nil)
		if err != nil {
			return err
		}
		if report.First != nil {
			a.found("bound", "against the reference VM: %v", report.First)
		}
		return nil
	})
}

// noting is a session whose traces are noted.
type noting struct {
	a *attempt
	s *host.Session
}

// Trace implements [compiler.Tracer].
func (n *noting) Trace(ctx context.Context, ids []int) (*host.Trace, error) {
	t, err := n.s.Trace(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, v := range t.Vectors {
		n.a.own(fmt.Sprintf("%s at position %d", v.Stage, t.Position), bitsOf(v.Values))
	}
	return t, nil
}
