package serve

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"amkc/text/grammar"
	"amkc/text/sampling"
)

// A formState follows a text that has to have a form, as a [grammar.State] does.
type formState interface {
	Take(id int) error
	Mask() grammar.Mask
	MayEnd() bool
	MayGoOn() bool
}

// A maskWorker computes which tokens may follow in an answer that has a form, on goroutines concurrent with the
// engine's: a schema with hundreds of alternatives, which any client may send, takes tens of milliseconds per token,
// and other sequences must not wait for that. It has one goroutine at a time, which ends with the token.
type maskWorker struct {
	state formState
	room  chan struct{} // a semaphore for the workers of all answers
	ready func()        // called when the work is done

	// Results, which may be read once wait has reported true.
	mask  sampling.Mask // the tokens that the next one is chosen among
	whole bool          // the text has ended
	err   error

	working bool
	done    chan struct{} // of capacity 1
	gone    atomic.Bool   // the answer has ended
}

// newMaskWorker begins with the mask of the first token, which is the same for all answers to a request.
func newMaskWorker(state formState, first sampling.Mask, room chan struct{}, ready func()) *maskWorker {
	return &maskWorker{state: state, mask: first, room: room, ready: ready, done: make(chan struct{}, 1)}
}

// firstMask computes the tokens that an answer may begin with, when a worker's place is free. It is empty if the client
// goes away first.
func (s *Server) firstMask(ctx context.Context, state formState) sampling.Mask {
	select {
	case s.maskRoom <- struct{}{}:
		defer func() { <-s.maskRoom }()
		return sampling.Mask(state.Mask())
	case <-ctx.Done():
		return sampling.Mask{}
	}
}

// take begins to compute what may follow a token, and nothing after the last one.
func (f *maskWorker) take(token int, last bool) {
	f.working = true
	go func() {
		f.room <- struct{}{}
		if !f.gone.Load() {
			f.err = guarded("the form of an answer", func() error { return f.work(token, last) })
		}
		<-f.room
		f.done <- struct{}{}
		f.ready()
	}()
}

func (f *maskWorker) work(token int, last bool) error {
	if err := f.state.Take(token); err != nil {
		return err
	}
	if f.whole = f.state.MayEnd() && !f.state.MayGoOn(); !f.whole && !last {
		f.mask = sampling.Mask(f.state.Mask())
	}
	return nil
}

// drop cancels work that has not begun.
func (f *maskWorker) drop() { f.gone.Store(true) }

// wait reports whether the work is done, waiting for it until a time.
func (f *maskWorker) wait(until <-chan time.Time) bool {
	select {
	case <-f.done:
		f.working = false
		return true
	default:
	}
	select {
	case <-f.done:
		f.working = false
		return true
	case <-until:
		return false
	}
}

// maskPatience is how long a step waits for masks. Most take microseconds. An answer whose mask takes longer sits out
// steps until it is there, and the steps do not wait for it again.
const maskPatience = time.Millisecond

// form goes on with the answers whose masks are computed within a time.
func (s *scheduler) form(within time.Duration) {
	var timer <-chan time.Time
	for id, g := range s.running {
		if g.form == nil || !g.form.working {
			continue
		}
		until := elapsed
		if within > 0 && !g.held {
			if timer == nil {
				timer = time.After(within)
			}
			until = timer
		}
		if !g.form.wait(until) {
			if !g.held {
				within = 0
			}
			continue
		}
		var ended bool
		err := guarded("an answer", func() (err error) {
			ended, err = g.formed()
			return err
		})
		g.flush()
		switch {
		case err != nil:
			fault := formFault(err)
			if fault == errInternal {
				s.log.Error("choosing a token failed", "request_id", g.record.id, "error", err.Error())
			}
			s.end(id, fault)
		case ended:
			s.end(id, nil)
		case g.sampler == nil:
			s.engine.Allow(id, g.allowed())
		}
	}
}

// elapsed is a timer that has fired.
var elapsed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// formFault is what a client is told of a form that cannot be gone on with.
func formFault(err error) *apiError {
	var open *grammar.OpenError
	if errors.As(err, &open) {
		return invalid("", "%v; want a schema with fewer alternatives, or some that differ sooner", open)
	}
	return errInternal
}
