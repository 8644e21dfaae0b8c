package cli

import (
	"context"
	"slices"

	"amkc/compiler"
	"amkc/ir"
	"amkc/refvm"
	"amkc/runtime/host"
)

// openRef opens a model or a build on the reference VM. Of a build it runs the program and the packed weights that are there.
func openRef(c *call, dir string, m *modelFlags) (*opened, error) {
	if isBuild(dir) {
		b, err := compiler.OpenBuild(dir)
		if err != nil {
			return nil, err
		}
		return newRef(b.Program, b, b.Close)
	}
	opts, err := m.options(c, dir)
	if err != nil {
		return nil, err
	}
	l, err := compiler.Lower(opts)
	if err != nil {
		return nil, err
	}
	c.report(l.Warnings)
	return newRef(l.Program, l.Weights, l.Close)
}

// newRef starts a session, in float32 throughout: weights as stored, nothing rounded on the way.
func newRef(p *ir.Program, w refvm.Weights, release func() error) (*opened, error) {
	s, err := refvm.NewSession(p, w, refvm.Options{})
	if err != nil {
		release()
		return nil, err
	}
	return &opened{engine: &refEngine{s, release}, device: deviceRef, vocab: p.Model.Vocab, maxSeq: p.Model.MaxSeq}, nil
}

// A refEngine is a session of the reference VM.
type refEngine struct {
	session *refvm.Session
	release func() error
}

func (e *refEngine) Close() error { return e.release() }

func (e *refEngine) Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int, err error) {
	for _, id := range ids {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		at := e.session.Pos()
		var logits []float32
		if logits, next, err = e.session.Step(id); err != nil {
			return 0, err
		}
		if onLogits != nil {
			if err := onLogits(at, logits); err != nil {
				return 0, err
			}
		}
	}
	return next, nil
}

func (e *refEngine) Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(id int) error) (host.Completion, error) {
	var done host.Completion
	next, err := e.Feed(ctx, prompt, nil)
	for err == nil {
		done.IDs = append(done.IDs, next)
		done.Stopped = slices.Contains(stops, next)
		if err = emit(next); err != nil || done.Stopped || len(done.IDs) == n {
			break
		}
		next, err = e.Feed(ctx, []int{next}, nil)
	}
	return done, err
}
