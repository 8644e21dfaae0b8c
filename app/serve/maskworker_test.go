package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/grammar"
)

const heldToWord = `"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_schema",
	"json_schema": {"schema": {"enum": ["red", "green"]}}}, "temperature": 0`

// occupied is a server with a request under way for whose masks there is no worker from its first token on.
func occupied(t *testing.T, e *scripted, begin func(s *testServer)) *testServer {
	e.gate = make(chan struct{})
	s := serve(t, e)
	begin(s)
	eventually(t, func() bool { running, _ := e.load(); return running == 1 })
	for range cap(s.maskRoom) {
		s.maskRoom <- struct{}{}
	}
	close(e.gate)
	eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.holds > 0
	})
	return s
}

// vacate makes room.
func (s *testServer) vacate() {
	for range cap(s.maskRoom) {
		<-s.maskRoom
	}
}

// An answer whose masks take long delays no other answer, whether the host or the kernel chooses tokens, and is itself
// the same.
func TestFormsKeepNobodyWaiting(t *testing.T) {
	want, _, _ := chatted(t, serve(t, newScripted(hashed)), heldToWord)
	for _, masks := range []bool{false, true} {
		e := newScripted(hashed)
		e.limits.Sequences, e.masks = 2, masks
		done := make(chan string, 1)
		s := occupied(t, e, func(s *testServer) {
			go func() {
				text, _, _ := chatted(t, s, heldToWord)
				done <- text
			}()
		})
		for range 5 {
			s.complete(t, `"prompt": "x", "max_tokens": 20, "ignore_eos": true`)
		}
		require.Empty(t, done)
		s.vacate()
		require.Equal(t, want, <-done)
		eventually(t, func() bool { running, _ := e.load(); return running == 0 })
	}
}

// A client that goes while its answer is constrained leaves nothing behind, nor does one that goes before.
func TestFormsOfThoseWhoLeave(t *testing.T) {
	e := newScripted(hashed)
	ctx, leave := context.WithCancel(t.Context())
	ask := func(s *testServer) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions",
			strings.NewReader("{"+heldToWord+"}"))
		if err == nil {
			r.Header.Set("Content-Type", "application/json")
			_, err = http.DefaultClient.Do(r)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v; want that it was cancelled", err)
		}
	}
	var all sync.WaitGroup
	s := occupied(t, e, func(s *testServer) { all.Go(func() { ask(s) }) })
	all.Go(func() { ask(s) })
	time.AfterFunc(20*time.Millisecond, leave)
	all.Wait()
	eventually(t, func() bool {
		running, _ := e.load()
		_, waiting, _, _ := s.scheduler.load()
		return running+waiting == 0
	})
	s.vacate()
	s.complete(t, `"prompt": "x", "max_tokens": 3`)
}

// A schema that leaves a text open to more than is followed has answers that follow it all the same.
func TestFormsThatAreOpen(t *testing.T) {
	var all []string
	for i := range 200 {
		all = append(all, fmt.Sprintf(`{"items": {"$ref": "#"}, "minItems": %d}`, i%5))
	}
	s := serve(t, newScripted(func(_, _ []int) int { return idsOf(t, "[")[0] }))
	status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}],
		"max_tokens": 12, "response_format": {"type": "json_schema", "json_schema": {"schema": {"anyOf": [`+
		strings.Join(all, ",")+`]}}}}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, "[[[")
}

// broken is a form that panics.
type broken struct{ formState }

func (broken) Take(int) error { panic("the cause") }

// A panic is an error, of that answer.
func TestFormsThatPanic(t *testing.T) {
	room, told := make(chan struct{}, 1), make(chan bool, 1)
	f := newMaskWorker(broken{}, nil, room, func() { told <- true })
	f.take(1, false)
	<-told
	require.True(t, f.wait(elapsed))
	require.EqualError(t, f.err, "the form of an answer: panic: the cause")
	f = newMaskWorker(broken{}, nil, room, func() { told <- true })
	f.drop()
	f.take(1, false)
	<-told
	require.NoError(t, f.err, "what nobody waits for is not done")
	require.Empty(t, room)
	require.Equal(t, errInternal, formFault(f.err))
	require.Equal(t, 400, formFault(&grammar.OpenError{}).status)
}
