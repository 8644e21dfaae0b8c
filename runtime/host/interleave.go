package host

import (
	"context"
	"errors"
	"path/filepath"

	"amkc/runtime/driver"
)

// timedBatch is how many launches of each kernel are queued at a time: enough that the GPU never waits for the host,
// few enough that a cancelled context is seen soon.
const timedBatch = 8

// A timedKernel is one of several that are measured against one another.
type timedKernel struct {
	queue func() error // puts a launch on the session's stream
	per   float64      // what the time of a launch is divided by
	times []float64    // microseconds, one per launch
	marks [timedBatch][2]*driver.Event
}

// An interleaving takes the times of several kernels by interleaving their launches, so that what disturbs one disturbs
// all. It must be closed.
type interleaving struct {
	s       *Session
	kernels []*timedKernel
	queued  func() // called while the launches of a batch run, once; may be nil
}

// interleave makes the events. Also with an error the interleaving must be closed.
func (s *Session) interleave(kernels ...*timedKernel) (*interleaving, error) {
	v := &interleaving{s: s, kernels: kernels}
	for _, k := range kernels {
		for i := range k.marks {
			for j := range k.marks[i] {
				var err error
				if k.marks[i][j], err = s.dev.NewEvent(); err != nil {
					return v, err
				}
			}
		}
	}
	return v, nil
}

func (v *interleaving) close() error {
	var errs []error
	for _, k := range v.kernels {
		for i := range k.marks {
			for _, e := range k.marks[i] {
				if e != nil {
					errs = append(errs, e.Close())
				}
			}
		}
	}
	if err := errors.Join(errs...); !driver.IsSticky(err) {
		return err
	}
	return nil
}

// warmUp runs launches of each kernel whose times are not kept.
func (v *interleaving) warmUp(ctx context.Context, launches int) error {
	err := v.run(ctx, launches, nil)
	for _, k := range v.kernels {
		k.times = nil
	}
	return err
}

// run launches each kernel n times, interleaved, and takes the times.
func (v *interleaving) run(ctx context.Context, launches int, progress Progress) error {
	for done := 0; done < launches; {
		n := min(launches-done, timedBatch)
		if err := v.batch(ctx, n); err != nil {
			return err
		}
		done += n
		if progress != nil {
			progress("measuring", int64(done), int64(launches))
		}
	}
	return nil
}

// batch is up to timedBatch launches of each kernel.
func (v *interleaving) batch(ctx context.Context, n int) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s := v.s
	err := s.dev.Do(func() error {
		for i := range n {
			for _, k := range v.kernels {
				if err := k.queueMarked(s.stream, i); err != nil {
					return err
				}
			}
		}
		if v.queued != nil {
			v.queued() // the host would only wait
		}
		return s.synchronize()
	})
	if err != nil {
		return err
	}
	if stalls := s.stalls(s.one); len(stalls) > 0 {
		return errors.Join(&StallError{Position: s.position, Stalls: stalls}, s.recover())
	}
	for _, k := range v.kernels {
		for _, m := range k.marks[:n] {
			ms, err := driver.ElapsedMS(m[0], m[1])
			if err != nil {
				return err
			}
			k.times = append(k.times, ms*1000/k.per)
		}
	}
	return nil
}

// queueMarked puts a launch on the stream, between two events.
func (k *timedKernel) queueMarked(stream *driver.Stream, i int) error {
	if err := stream.Record(k.marks[i][0]); err != nil {
		return err
	}
	if err := k.queue(); err != nil {
		return err
	}
	return stream.Record(k.marks[i][1])
}

// timedSteps is a function of a kernel that does the steps of a decode launch from the session's position on, again
// and again: every launch overwrites the cache rows of the one before. Kernels that exchange use up epochs as decoding
// does.
func (s *Session) timedSteps(k *megakernel, f functions, steps int, exchanges bool,
	set func(*launchParams)) *timedKernel {
	return &timedKernel{per: float64(steps), queue: func() error {
		p := s.params(steps)
		if set != nil {
			set(&p)
		}
		if err := k.enter(s, &p); err != nil {
			return err
		}
		if exchanges {
			k.epoch += uint64(steps)
		}
		return k.enqueue(s, f, &p)
	}}
}

// timedCeiling is timedSteps of the kernel that streams the bytes of a decode kernel and waits for no exchange.
func (s *Session) timedCeiling(k *megakernel, steps int, set func(*launchParams)) (*timedKernel, error) {
	f, err := s.function(k, k.module, filepath.Join(k.info.Dir(), FatbinFile), ceilingName)
	if err != nil {
		return nil, err
	}
	return s.timedSteps(k, f, steps, false, set), nil
}

// Rehearse launches each kernel that [Session.Bench] and [Session.Profile] measure, with the given number of steps, and
// measures nothing: it is for machines without a clock. Results of a step in parts are compared, as in Bench. The
// kernel that decodes without a stream of weights comes first: it reads and computes garbage, and drained is called
// after it. The session is at position 0 afterwards.
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
		if err := k.queue(); err != nil {
			return err
		}
		return s.synchronize()
	})
	if err != nil {
		return err
	}
	if stalls := s.stalls(s.one); len(stalls) > 0 {
		return errors.Join(&StallError{Position: s.position, Stalls: stalls}, s.recover())
	}
	return nil
}
