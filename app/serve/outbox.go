package serve

import (
	"context"
	"sync"
	"time"
)

// An outbox takes deltas of a request's answers from the goroutines that make them and hands them to the one that sends
// them. The former never wait, however slow the client is; there are no more deltas than tokens.
type outbox struct {
	mu     sync.Mutex
	deltas []delta
	open   int // answers that have not ended
	closed bool
	err    error
	news   chan struct{} // of capacity 1: something has changed
}

func newOutbox(answers int) *outbox { return &outbox{open: answers, news: make(chan struct{}, 1)} }

func (o *outbox) put(deltas ...delta) {
	o.mu.Lock()
	o.deltas = append(o.deltas, deltas...)
	o.mu.Unlock()
	o.tell()
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
