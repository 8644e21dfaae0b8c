package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
)

// An intake bounds what requests cost before they are admitted to the queue or refused. There are never more than a
// number of bytes of bodies in memory, and never more work on them than for one body of the largest size and for some
// processors: reading JSON, formatting messages, encoding, and grammars of schemas and tools. Requests wait for their
// turn in the order in which they came, up to a number of them.
type intake struct {
	size    int // bytes of bodies that are worked on at a time
	slots   int // and their number
	waiters int // requests that may wait
	most    int // bytes of bodies in memory

	mu      sync.Mutex
	held    int // bytes of bodies
	bytes   int // of those that are worked on
	working int
	waiting []*turn // in their order
}

// A turn is one of a request, which may begin when now is closed.
type turn struct {
	size int
	now  chan struct{}
}

// bodiesHeld is how many bodies of the largest size there may be in memory.
const bodiesHeld = 8

func newIntake(size, slots, waiters int) *intake {
	return &intake{size: size, slots: slots, waiters: waiters, most: bodiesHeld * size}
}

// errGone ends a request whose client is gone, which nothing is sent to.
var errGone = errors.New("the client has gone")

// enter waits for the turn of a body of n bytes. Errors are errFull and errGone. leave ends the turn.
func (in *intake) enter(ctx context.Context, size int) (leave func(), err error) {
	t := &turn{min(size, in.size), make(chan struct{})}
	leave = func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.working--
		in.bytes -= t.size
		in.next()
	}
	in.mu.Lock()
	if len(in.waiting) >= in.waiters {
		in.mu.Unlock()
		return nil, errFull
	}
	in.waiting = append(in.waiting, t)
	in.next()
	in.mu.Unlock()
	select {
	case <-t.now:
		return leave, nil
	case <-ctx.Done():
	}
	in.mu.Lock()
	at := slices.Index(in.waiting, t)
	if at >= 0 {
		in.waiting = slices.Delete(in.waiting, at, at+1)
		in.next() // the one after it may be smaller
	}
	in.mu.Unlock()
	if at < 0 { // its turn has come meanwhile
		leave()
	}
	return nil, errGone
}

// next begins the turns that there is room for, none before another that came earlier.
func (in *intake) next() {
	for len(in.waiting) > 0 {
		t := in.waiting[0]
		if in.working == in.slots || in.bytes+t.size > in.size {
			return
		}
		in.waiting[0] = nil
		in.waiting = in.waiting[1:]
		in.working++
		in.bytes += t.size
		close(t.now)
	}
}

// hold takes room for bytes of a body, and reports whether there is some.
func (in *intake) hold(n int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.held+n > in.most {
		return false
	}
	in.held += n
	return true
}

// free gives the room of bytes back.
func (in *intake) free(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.held -= n
}

// A heldBody is a body whose bytes are counted as they come, so that a client that says nothing holds no room.
type heldBody struct {
	io.Reader
	intake *intake
	held   int
}

// Read fails with errFull where there is no room.
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 && !b.intake.hold(n) {
		return 0, errFull
	}
	b.held += n
	return n, err
}

// prepare reads the body of a request and, when it is its turn, does the work that comes before an answer: f gets the
// fields. The bytes of the body count until the request ends.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, f func(all map[string]value) error) error {
	data, err := s.body(w, r)
	if err != nil {
		return err
	}
	leave, err := s.intake.enter(r.Context(), len(data))
	if err != nil {
		return err
	}
	defer leave()
	all, err := members(data)
	if err != nil {
		return err
	}
	return f(all)
}
