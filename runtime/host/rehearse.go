package host

import (
	"context"
	"errors"
)

// Rehearse launches each kernel that [Session.Bench] and [Session.Profile] measure, so many steps of it, and takes no
// times: for a machine that has none. Results are compared as Bench does, those of a step in parts. The kernel that
// decodes without a stream of weights comes first: what it reads and computes is garbage, and drained is called after
// it. The session stands at position 0 afterwards.
func (s *Session) Rehearse(ctx context.Context, steps int, drained func() error) (err error) {
	if s.closed {
		return ErrClosed
	}
	o := BenchOptions{StepsPerLaunch: steps}
	if err := s.benchDefaults(&o); err != nil {
		return err
	}
	defer s.Reset()
	if err := s.drainOnce(ctx, steps); err != nil {
		return err
	}
	if err := drained(); err != nil {
		return err
	}
	b, err := s.newBench(o)
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return err
	}
	r := &recorder{s: s, steps: steps, capacity: steps * s.spansPerStep(o.Position)}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(); err != nil {
		return err
	}
	kernels := []*timedKernel{b.plain, b.ceiling, b.decode, r.profile}
	for _, p := range b.passes {
		kernels = append(kernels, p.ceiling, p.decode)
	}
	for _, k := range append(kernels, b.parts.timed...) {
		if err := s.launchOnce(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) drainOnce(ctx context.Context, steps int) (err error) {
	m, err := s.openMeasures()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if m.drain == nil {
		return nil
	}
	return s.launchOnce(ctx, s.timedSteps(s.one, m.drain, steps, true, nil))
}

// launchOnce launches a kernel and waits for it.
func (s *Session) launchOnce(ctx context.Context, k *timedKernel) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := s.dev.Do(func() error {
		if err := k.queue(0); err != nil {
			return err
		}
		return s.stream.Synchronize()
	})
	if err != nil {
		return err
	}
	if stalls := s.stalls(s.one); len(stalls) > 0 {
		return errors.Join(&StallError{Position: s.position, Stalls: stalls}, s.recover())
	}
	return nil
}
