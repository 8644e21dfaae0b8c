package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// A scheduler owns an engine. It has a bounded queue of generations, and one goroutine that admits them in their order
// and decodes as long as there is something to decode.
type scheduler struct {
	engine Engine
	queue  int // generations that may wait
	log    *slog.Logger
	now    func() time.Time

	mu       sync.Mutex
	waiting  []*generation
	reserved int                      // places of generations that are being made
	parts    int                      // accepted requests that submit their generations one after the other
	running  map[Sequence]*generation // changed by the scheduler's goroutine alone
	stopping bool                     // no new request is accepted
	ended    bool                     // no generation is accepted
	failed   error                    // of the last step; after ErrLost there is no other step

	wake chan struct{} // of capacity 1: there is something to do
	done chan struct{} // closed when the goroutine has ended
}

func newScheduler(e Engine, queue int, log *slog.Logger, now func() time.Time) *scheduler {
	return &scheduler{engine: e, queue: queue, log: log, now: now, running: map[Sequence]*generation{},
		wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// submit makes n generations and puts them at the end of the queue, all or none. Their places are taken before they are
// made, which is work too: as many wait for that as may wait in the queue. Errors are errFull and errStopping; what
// follows another generation of its request has the place of that one, and gets neither unless everything is cancelled.
func (s *scheduler) submit(n int, follows bool, make func() []*generation) (all []*generation, err error) {
	if err := s.reserve(n, follows); err != nil {
		return nil, err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reserved -= n
		if err = errStopping; !s.ended && (follows || !s.stopping) {
			err = nil
			s.enqueue(all)
		}
	}()
	return make(), nil
}

// reserve takes places for generations that are about to be made.
func (s *scheduler) reserve(n int, follows bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(n); err != nil && !follows {
		return err
	}
	s.reserved += n
	return nil
}

func (s *scheduler) enqueue(all []*generation) {
	s.waiting = append(s.waiting, all...)
	s.tell()
}

// inParts announces a request whose generations come one after the other, until done is called.
func (s *scheduler) inParts() (done func()) {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.parts += n
		s.tell()
	}
	add(1)
	return func() { add(-1) }
}

// check says what submit would say now of n generations, so that no work is done for a request that will be
// refused.
func (s *scheduler) check(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room(n)
}

func (s *scheduler) room(n int) error {
	switch {
	case s.stopping:
		return errStopping
	case len(s.waiting)+s.reserved+len(s.running)+n > s.most():
		return errFull
	}
	return nil
}

// most is how many generations there can be, in the queue and out of it.
func (s *scheduler) most() int { return s.queue + s.engine.Limits().Sequences }

// leave takes generations whose client has gone out of the queue. Those that run end before the next step.
func (s *scheduler) leave(all ...*generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *generation) bool { return slices.Contains(all, w) })
	s.tell()
}

// drained reports whether no request is accepted any more, and all accepted ones have submitted their generations.
func (s *scheduler) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping && s.parts == 0
}

// load is how many generations run and wait, and the error of the last step.
func (s *scheduler) load() (running, waiting int, failed error, stopping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running), len(s.waiting), s.failed, s.stopping
}

// stop refuses new requests. The goroutine ends when running and waiting generations have ended. Waiting ones are not
// refused, because a proxy may have sent them here after another server had refused them, and has no third one.
func (s *scheduler) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	s.tell()
}

// abandon ends everything with an error.
func (s *scheduler) abandon(err error) {
	s.stop()
	s.endAll(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.waiting {
		g.close(err)
	}
	s.waiting, s.ended = nil, true
}

func (s *scheduler) tell() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run is the scheduler's goroutine. It cancels everything when ctx ends, or the engine is lost.
func (s *scheduler) run(ctx context.Context) {
	defer close(s.done)
	for {
		s.admit()
		s.dropGone()
		s.form(0)
		running, waiting, failed, _ := s.load()
		switch {
		case ctx.Err() != nil:
			s.abandon(errStopping)
			return
		case errors.Is(failed, ErrLost):
			s.abandon(errInternal)
			return
		case running > 0 && s.hold():
			s.step(ctx)
		case running > 0: // all wait for something else
			s.sleep(ctx)
		case waiting > 0: // the engine has refused one, and others wait
		case s.drained():
			return
		default:
			s.sleep(ctx)
		}
	}
}

// sleep waits until there is something to do.
func (s *scheduler) sleep(ctx context.Context) {
	select {
	case <-s.wake:
	case <-ctx.Done():
	}
}

// hold makes sequences sit out steps for as long as they wait for something else, and reports whether others go on.
func (s *scheduler) hold() (others bool) {
	for id, g := range s.running {
		if waits := g.waits(); waits != g.held {
			g.held = waits
			s.engine.Hold(id, waits)
		}
		others = others || !g.held
	}
	return others
}

// admit gives the engine what it has room for.
func (s *scheduler) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > 0 && len(s.running) < s.engine.Limits().Sequences && !errors.Is(s.failed, ErrLost) {
		g := s.waiting[0]
		s.waiting[0] = nil // the array lives on, and a generation has vectors of the size of the vocabulary
		s.waiting = s.waiting[1:]
		if g.ctx.Err() != nil {
			g.close(context.Cause(g.ctx))
			continue
		}
		o := g.options(s.engine)
		id, cached, err := s.engine.Admit(g.prompt, o)
		if err != nil {
			s.log.Error("the engine refuses a sequence", "request_id", g.record.id, "error", err.Error())
			g.close(errInternal)
			continue
		}
		if err := g.begin(o, s.engine.Limits().Vocab, cached, s.now()); err != nil {
			s.log.Error("tokens cannot be chosen", "request_id", g.record.id, "error", err.Error())
			g.close(errInternal)
			s.engine.Retire(id)
			continue
		}
		s.running[id] = g
	}
}

// dropGone ends what nobody waits for any more.
func (s *scheduler) dropGone() {
	for id, g := range s.running {
		if g.ctx.Err() != nil {
			s.end(id, context.Cause(g.ctx))
		}
	}
}

// step decodes, and gives out what came of it.
func (s *scheduler) step(ctx context.Context) {
	events, err := s.decode(ctx)
	if err != nil && ctx.Err() != nil {
		return // it was cancelled, which run sees to
	}
	s.mu.Lock()
	s.failed = err
	s.mu.Unlock()
	if err != nil {
		s.log.Error("decoding failed", "error", err.Error())
		s.endAll(errInternal)
		return
	}
	now := s.now()
	for _, e := range events {
		g := s.running[e.Sequence]
		if g == nil || g.ctx.Err() != nil {
			continue // it has ended with an event before, or is about to
		}
		if e.Err != nil {
			s.log.Error("choosing a token failed", "request_id", g.record.id, "error", e.Err.Error())
			s.end(e.Sequence, errInternal)
			continue
		}
		token, ended, err := s.accept(g, e, now)
		switch {
		case err != nil:
			s.log.Error("choosing a token failed", "request_id", g.record.id, "error", err.Error())
			s.end(e.Sequence, errInternal)
		case ended:
			s.end(e.Sequence, nil)
		case e.Given:
		case g.sampler != nil:
			s.engine.Replace(e.Sequence, token)
		case g.going != nil:
			s.engine.Allow(e.Sequence, g.allowed())
		}
	}
	for id, g := range s.running {
		g.flush()
		if g.tokens == 0 {
			g.out.reads(len(g.prompt), s.engine.Unread(id))
		}
	}
	s.form(maskPatience)
}

// decode is a step of the engine, whose panic is an error.
func (s *scheduler) decode(ctx context.Context) (events []Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("the engine panicked", "stack", string(debug.Stack()))
			err = fmt.Errorf("the engine panicked: %v", p)
		}
	}()
	return s.engine.Step(ctx)
}

// accept gives a token to its generation, whose panic is an error.
func (s *scheduler) accept(g *generation, e Event, now time.Time) (token int, ended bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a generation panicked", "request_id", g.record.id, "stack", string(debug.Stack()))
			err = fmt.Errorf("the generation panicked: %v", p)
		}
	}()
	return g.accept(e, now)
}

// end retires a sequence. Its generation gets the error, or nil if it has ended on its own: not before there is room
// for the next, which the client may send as soon as it has the answer.
func (s *scheduler) end(id Sequence, err error) {
	g := s.running[id]
	if g.form != nil {
		g.form.drop()
	}
	g.sampler, g.form = nil, nil // which are large, and a client may take its answer for long
	s.engine.Retire(id)
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	g.close(err)
}

func (s *scheduler) endAll(err error) {
	for id := range s.running {
		s.end(id, err)
	}
}
