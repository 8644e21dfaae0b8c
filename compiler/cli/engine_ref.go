package cli

import (
	"context"
	"slices"

	"amkc/compiler"
	"amkc/ir"
	"amkc/refvm"
	"amkc/runtime/host"
	"amkc/runtime/progress"
	"amkc/text/sampling"
)

// openRef opens a model or a build on the reference VM. Of a build it runs the program and the packed weights that
// are there.
func openRef(ctx context.Context, c *call, round refvm.Rounding, dir string, m *modelFlags) (*opened, error) {
	if isBuild(dir) {
		b, err := compiler.OpenBuild(dir)
		if err != nil {
			return nil, err
		}
		return newRef(c, round, b.Program, b, b.Close)
	}
	opts, err := m.options(c, dir)
	if err != nil {
		return nil, err
	}
	l, err := compiler.RunPasses(opts)
	if err != nil {
		return nil, err
	}
	c.report(l.Warnings)
	line := c.progress()
	err = l.Calibrate(ctx, line.Show)
	line.Clear()
	if err != nil {
		l.Close()
		return nil, err
	}
	return newRef(c, round, l.Program, l.Weights, l.Close)
}

// newRef starts a session.
func newRef(c *call, round refvm.Rounding, p *ir.Program, w refvm.Weights, release func() error) (*opened, error) {
	line := c.progress()
	s, err := refvm.NewSession(p, watched(p, w, line), refvm.Options{Round: round})
	line.Clear()
	if err != nil {
		release()
		return nil, err
	}
	e := &refEngine{session: s, release: release, line: line, streams: !c.json && progress.IsTerminal(c.stdout)}
	return &opened{engine: e, device: deviceRef, name: p.Model.Name, vocab: p.Model.Vocab, maxSeq: p.Model.MaxSeq,
		hidden: p.Model.Hidden, chunk: 1}, nil
}

// watchedWeights shows how much of them has been read.
type watchedWeights struct {
	refvm.Weights
	step progress.Step
	line watcher
}

func watched(p *ir.Program, w refvm.Weights, line watcher) refvm.Weights {
	_, size := ir.WeightArena(p)
	return &watchedWeights{w, progress.Step{Activity: "reading weights", Total: int64(size), Unit: progress.Bytes},
		line}
}

func (w *watchedWeights) Floats(b *ir.Buffer, i int) ([]float32, error) {
	w.line.Show(w.step)
	w.step.Done += int64(b.Bytes())
	return w.Weights.Floats(b, i)
}

// A refEngine is a session of the reference VM.
type refEngine struct {
	session *refvm.Session
	release func() error
	line    watcher
	streams bool // tokens go to a terminal as they come, and show themselves how far it is
}

func (e *refEngine) Close() error { return e.release() }

func (e *refEngine) Position() int { return e.session.Pos() }

func (e *refEngine) Reset() {
	e.session.Last = false
	e.session.Reset()
}

func (e *refEngine) Rewind(position int) error {
	e.session.Last = false
	return e.session.Rewind(position)
}

// Chooses implements [sampling.Chooser]: the program draws with a temperature alone.
func (e *refEngine) Chooses(o *sampling.Options, masked bool) bool { return !masked && o.Plain() }

// Choose implements [sampling.Chooser].
func (e *refEngine) Choose(o *sampling.Options, text sampling.Text) bool {
	if !e.Chooses(o, text.Allowed != nil) {
		return false
	}
	settings := refvm.Settings{Temperature: o.Temperature}
	if o.Temperature != 0 {
		settings.Seed = o.Seed
	}
	return e.session.Sample([]refvm.Settings{settings}) == nil
}

func (e *refEngine) Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int,
	err error) {
	defer e.line.Clear()
	for i, id := range ids {
		if len(ids) > 1 { // who feeds one by one knows better how far it is
			e.line.Show(progress.Step{Activity: "reading tokens", Done: int64(i), Total: int64(len(ids)),
				Unit: "tokens"})
		}
		if next, err = e.step(ctx, id, onLogits); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// State decodes an id, and returns the last hidden state after it.
func (e *refEngine) State(ctx context.Context, id int) ([]float32, error) {
	if _, err := e.step(ctx, id, nil); err != nil {
		return nil, err
	}
	return e.session.Hidden(), nil
}

// step decodes one id.
func (e *refEngine) step(ctx context.Context, id int, onLogits func(position int, logits []float32) error) (next int,
	err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	at := e.session.Pos()
	logits, next, err := e.session.Step(id)
	if err == nil && onLogits != nil {
		err = onLogits(at, logits)
	}
	return next, err
}

func (e *refEngine) Complete(ctx context.Context, prompt []int, n int, stops []int,
	emit func(id int) error) (host.Completion, error) {
	defer e.line.Clear()
	var done host.Completion
	if err := e.session.StopAt(stops); err != nil {
		return done, err
	}
	next, err := e.Feed(ctx, prompt[:len(prompt)-1], nil)
	if err == nil {
		e.session.Last = n == 1
		next, err = e.step(ctx, prompt[len(prompt)-1], nil)
	}
	for err == nil {
		done.IDs = append(done.IDs, next)
		if err = emit(next); err != nil || e.session.Stopped() {
			break
		}
		if !e.streams {
			e.line.Show(progress.Step{Activity: "decoding", Done: int64(len(done.IDs)), Total: int64(n),
				Unit: "tokens"})
		}
		e.session.Last = len(done.IDs)+1 == n
		next, err = e.step(ctx, next, nil)
	}
	done.Stopped = err == nil && slices.Contains(stops, next)
	return done, err
}
