package serve

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A stream is an answer in server-sent events. Its head is sent with the first of them, so that what goes wrong before
// is answered with a status.
type stream struct {
	w     http.ResponseWriter
	begun bool
	err   error // of a write: the client has gone
}

// An event is one of a stream.
type event struct {
	name string // empty: none is sent
	data []byte
}

// send writes events and flushes once after them: tokens of one launch come together, and a write of its own for each
// would make the last of them late.
func (s *stream) send(all []event) error {
	if len(all) == 0 {
		return s.err
	}
	var text []byte
	for _, e := range all {
		if e.name != "" {
			text = append(append(append(text, "event: "...), e.name...), '\n')
		}
		text = append(append(append(text, "data: "...), e.data...), "\n\n"...)
	}
	return s.put(text)
}

// ping sends events that say nothing, or a comment, which keeps proxies from closing the connection.
func (s *stream) ping(all []event) error {
	if len(all) > 0 {
		return s.send(all)
	}
	return s.put([]byte(": ping\n\n"))
}

func (s *stream) put(text []byte) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("X-Accel-Buffering", "no") // for proxies that would collect what they pass on
		s.w.WriteHeader(http.StatusOK)
	}
	if s.err == nil {
		_, s.err = s.w.Write(text)
	}
	if s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
	return s.err
}

// readEvery is how often a stream says how much of a long prompt has been read, in a comment.
const readEvery = time.Second

// stream answers as the answer comes. An error that it returns is to be answered, as nothing has been sent.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, from *outbox, f form) error {
	out := &stream{w: w}
	opened := map[int]bool{}
	every, quiet := min(s.pingEvery, readEvery), time.Duration(0) // for which nothing has been said
	err := from.follow(r.Context(), func(deltas []delta) (bool, error) {
		var all []event
		for _, d := range deltas {
			if !opened[d.answer] {
				all, opened[d.answer] = append(all, f.opening(d.answer)...), true
			}
			if d.text != "" || len(d.tokens) > 0 {
				all = append(all, f.piece(d)...)
			}
			if d.finish != "" {
				all = append(all, f.closing(d.answer, d.finish, d.stop)...)
			}
		}
		if len(all) > 0 {
			quiet = 0
		}
		return len(all) > 0, out.send(all)
	}, every, func() error {
		if text := from.reading(); text != "" {
			quiet = 0
			return out.put([]byte(": " + text + "\n\n"))
		}
		if quiet += every; quiet < s.pingEvery {
			return nil
		}
		quiet = 0
		return out.ping(f.ping())
	})
	if err == nil {
		err = out.send(f.ending(recordOf(r).usage()))
	}
	switch {
	case out.err != nil || r.Context().Err() != nil: // nobody reads on
	case err != nil && !out.begun:
		return err
	case err != nil:
		told := asAPI(err)
		recordOf(r).fail(told, err)
		_ = out.send(f.failed(told))
	}
	return nil
}

// An outbox takes deltas of a request's answers from the goroutines that make them and hands them to the one that sends
// them. The former never wait, however slow the client is; there are no more deltas than tokens.
type outbox struct {
	mu     sync.Mutex
	deltas []delta
	open   int // answers that have not ended
	closed bool
	err    error
	read   string        // how much of the prompt that is being read, if that has changed since it was said
	news   chan struct{} // of capacity 1: something has changed
}

func newOutbox(answers int) *outbox { return &outbox{open: answers, news: make(chan struct{}, 1)} }

func (o *outbox) put(deltas ...delta) {
	o.mu.Lock()
	o.deltas = append(o.deltas, deltas...)
	o.mu.Unlock()
	o.tell()
}

// reads notes how many tokens of a prompt a step has left unread.
func (o *outbox) reads(tokens, unread int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.read = ""; unread > 0 {
		o.read = fmt.Sprintf("%d of %d tokens of the prompt are read", tokens-unread, tokens)
	}
}

// reading takes what reads has noted; empty: there is nothing new.
func (o *outbox) reading() (text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, o.read = o.read, ""
	return text
}

// close ends the deltas of an answer. The last one ends all deltas, and so does one that has ended with an error.
func (o *outbox) close(err error) {
	o.mu.Lock()
	if o.open--; !o.closed && (err != nil || o.open == 0) {
		o.closed, o.err = true, err
	}
	o.mu.Unlock()
	o.tell()
}

func (o *outbox) tell() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func (o *outbox) take() (deltas []delta, closed bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	deltas, o.deltas = o.deltas, nil
	return deltas, o.closed, o.err
}

// follow gives the deltas to send, in their order and those that have come meanwhile together, until they end, ctx does
// or send fails. idle, if not nil, is called whenever send has said nothing for a while: of a call that is not complete
// there is nothing to say.
func (o *outbox) follow(ctx context.Context, send func([]delta) (said bool, err error), while time.Duration,
	idle func() error) error {
	tick := time.NewTicker(while)
	defer tick.Stop()
	for {
		deltas, closed, err := o.take()
		if len(deltas) > 0 {
			said, err := send(deltas)
			if err != nil {
				return err
			}
			if said {
				tick.Reset(while)
			}
		}
		if closed {
			return err
		}
		select {
		case <-o.news:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if idle != nil {
				if err := idle(); err != nil {
					return err
				}
			}
		}
	}
}
