package serve

import (
	"fmt"
	"sync"

	"amkc/text/sampling"
)

// A scorer finds the log-probabilities of an answer's tokens, whose logits it is given, concurrently with the engine:
// for a large vocabulary that takes as long as a step, which other sequences are not to wait for. Several tokens, as
// those of a prompt, are worked for at a time. Beyond that it does what it is told in its order, on a goroutine that
// ends when there is nothing to do.
type scorer struct {
	wanted int             // of the largest
	room   chan struct{}   // has a place for each token that may be worked for at a time, of all answers
	most   int             // rows of logits that may wait
	failed func(err error) // called at most once, and nothing is done afterwards
	ready  func()          // called when there is room again

	mu   sync.Mutex
	work []func() error
	rows int  // of logits among the work
	busy bool // there is a goroutine
	gone bool // nothing is done any more
}

func newScorer(wanted, most int, room chan struct{}, failed func(error), ready func()) *scorer {
	return &scorer{wanted: wanted, room: room, most: most, failed: failed, ready: ready}
}

// score completes a choice, or what is known of a token that was given. logits are its to keep, and position is that of
// the token.
func (s *scorer) score(logits []float32, c *sampling.Choice, position int, given bool) {
	s.mu.Lock()
	s.rows++
	s.mu.Unlock()
	found := make(chan error, 1)
	go func() {
		s.room <- struct{}{}
		found <- guarded("log-probabilities", func() error { return s.find(logits, c, position, given) })
		<-s.room
		s.mu.Lock()
		s.rows--
		room := s.rows == s.most-1
		s.mu.Unlock()
		if room {
			s.ready()
		}
	}()
	s.do(func() error { return <-found })
}

func (s *scorer) find(logits []float32, c *sampling.Choice, position int, given bool) (err error) {
	s.mu.Lock()
	gone := s.gone
	s.mu.Unlock()
	switch {
	case gone:
	case given:
		*c, err = sampling.Given(logits, c.ID, s.wanted, position)
	default:
		*c, err = sampling.Score(logits, c.ID, s.wanted, position)
	}
	return err
}

// lagging reports whether the maximum number of rows is waiting.
func (s *scorer) lagging() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows >= s.most && !s.gone
}

// do is done after what comes before it.
func (s *scorer) do(what func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.work = append(s.work, what)
	if !s.busy {
		s.busy = true
		go s.run()
	}
}

// drop leaves undone what is not done yet, and what comes.
func (s *scorer) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work, s.gone = nil, true
}

func (s *scorer) run() {
	for {
		s.mu.Lock()
		if len(s.work) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		next := s.work[0]
		s.work[0] = nil // the array lives on, and rows are large
		s.work = s.work[1:]
		s.mu.Unlock()
		if err := guarded("log-probabilities", next); err != nil {
			s.drop()
			s.failed(err)
		}
	}
}

// guarded makes an error of a panic.
func guarded(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: panic: %v", what, p)
		}
	}()
	return f()
}
