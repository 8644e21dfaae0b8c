package serve

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"amkc/runtime/grammar"
	"amkc/runtime/sampling"
)

// A formState is how much there is of a text that has a form, as [grammar.State] says.
type formState interface {
	Take(id int) error
	Mask() grammar.Mask
	MayEnd() bool
	MayGoOn() bool
}

// A forming holds an answer to its form beside the engine: a schema with hundreds of alternatives, which anybody may
// send, takes tens of milliseconds a token, and other sequences are not to wait for that. One step of work is done at a
// time, on a goroutine that ends with it.
type forming struct {
	state formState
	room  chan struct{} // has a place for each that may work at a time
	ready func()        // called when the work is done

	// What the work has come to, to be read when it is done.
	mask  sampling.Mask // the tokens that the next one is chosen among
	whole bool          // the text has ended
	err   error

	working bool
	done    chan struct{} // of capacity 1
	gone    atomic.Bool   // nobody waits for it any more
}

// newForming begins with a mask that has been found, as that of all answers to a request is the same.
func newForming(state formState, first sampling.Mask, room chan struct{}, ready func()) *forming {
	return &forming{state: state, mask: first, room: room, ready: ready, done: make(chan struct{}, 1)}
}

// firstMask finds the tokens that an answer may begin with, among others that are worked for. Of a client that has gone
// there are none.
func (s *Server) firstMask(ctx context.Context, state formState) sampling.Mask {
	select {
	case s.forming <- struct{}{}:
		defer func() { <-s.forming }()
		return sampling.Mask(state.Mask())
	case <-ctx.Done():
		return sampling.Mask{}
	}
}

// take goes on with a token. At the last one there is nothing to follow.
func (f *forming) take(token int, last bool) {
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

func (f *forming) work(token int, last bool) error {
	if err := f.state.Take(token); err != nil {
		return err
	}
	if f.whole = f.state.MayEnd() && !f.state.MayGoOn(); !f.whole && !last {
		f.mask = sampling.Mask(f.state.Mask())
	}
	return nil
}

// drop leaves undone what has not begun.
func (f *forming) drop() { f.gone.Store(true) }

// wait reports whether the work is done, before a time has come.
func (f *forming) wait(until <-chan time.Time) bool {
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

// patience is how long a step waits for forms to be worked for. Few take as long, and those sit out steps, which do not
// wait for them.
const patience = time.Millisecond

// form goes on with answers whose forms have been worked for, or will have been before a time is over.
func (s *scheduler) form(within time.Duration) {
	var timer <-chan time.Time
	for id, g := range s.running {
		if g.form == nil || !g.form.working {
			continue
		}
		until := over
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

// over is a time that has come.
var over = func() <-chan time.Time {
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
