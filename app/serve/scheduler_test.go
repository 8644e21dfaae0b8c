package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventually waits for what another goroutine does.
func eventually(t testing.TB, what func() bool) {
	t.Helper()
	require.Eventually(t, what, 30*time.Second, time.Millisecond)
}

// A full queue refuses what comes, at once, and says when to try again.
func TestFullQueue(t *testing.T) {
	e := says(t, "abc")
	e.gate = make(chan struct{})
	s := newTest(e, func(c *Config) { c.Queue = 2 }).start(t)
	answers := make(chan int, 3)
	for range 3 { // one that runs, two that wait
		go func() {
			status, _ := s.post(t, "/v1/completions", `{"prompt": "x"}`)
			answers <- status
		}()
	}
	eventually(t, func() bool {
		running, waiting, _, _ := s.scheduler.load()
		return running == 1 && waiting == 2
	})
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		status, header, body := s.send(t, http.MethodPost, path,
			`{"prompt": "x", "messages": [{"role": "user", "content": "x"}]}`, nil)
		if path == "/v1/completions" {
			require.Equal(t, 400, status, "what is wrong with a request comes first")
			status, header, body = s.send(t, http.MethodPost, path, `{"prompt": "x"}`, nil)
		} else {
			status, header, body = s.send(t, http.MethodPost, path,
				`{"messages": [{"role": "user", "content": "x"}]}`, nil)
		}
		require.Equal(t, 429, status)
		require.Equal(t, "1", header.Get("Retry-After"))
		f := faultOf(t, body)
		require.Equal(t, "rate_limit_error", f.Type)
		require.Equal(t, "queue_full", f.Code)
	}
	_, _, body := s.send(t, http.MethodGet, "/health", "", nil)
	require.JSONEq(t, `{"status": "ok", "running": 1, "waiting": 2}`, body)
	close(e.gate)
	for range 3 {
		require.Equal(t, 200, <-answers)
	}
}

// A lingering engine takes its time to retire a sequence.
type lingering struct{ *scripted }

func (e lingering) Retire(s Sequence) {
	time.Sleep(2 * time.Millisecond)
	e.scripted.Retire(s)
}

// Without a queue, a client that has its answer finds the engine free.
func TestNoQueue(t *testing.T) {
	s := newTest(lingering{says(t, "abc")}, func(c *Config) { c.Queue = 0 }).start(t)
	for range 20 {
		status, body := s.post(t, "/v1/completions", `{"prompt": "x"}`)
		require.Equal(t, 200, status, body)
	}
}

// A client that goes away ends its sequence, or leaves the queue; the others do not notice.
func TestCancellation(t *testing.T) {
	e := newScripted(func(_, out []int) int { return 100 + len(out) }) // never ends
	e.limits.MaxSeq = 1 << 30
	e.gate = make(chan struct{})
	s := newTest(e, func(c *Config) { c.Queue = 2 }).start(t)
	ask := func(ctx context.Context, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/completions", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		return http.DefaultClient.Do(r)
	}
	endless, leave := context.WithCancel(t.Context())
	waits, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		_, err := ask(waits, `{"prompt": "y", "max_tokens": 1}`)
		require.ErrorIs(t, err, context.Canceled)
	})
	answer := make(chan *http.Response, 1)
	eventually(t, func() bool { running, _, _, _ := s.scheduler.load(); return running == 1 })
	all.Go(func() {
		r, err := ask(endless, `{"prompt": "x", "max_tokens": 100000000, "stream": true}`)
		require.NoError(t, err)
		answer <- r
	})
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting == 1 })
	third := make(chan int, 1)
	all.Go(func() {
		status, _ := s.post(t, "/v1/completions", `{"prompt": "z", "max_tokens": 2}`)
		third <- status
	})
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting == 2 })

	cancel() // the one that runs, before it has a token
	eventually(t, func() bool { return strings.Contains(s.log.String(), "status=499") })
	e.gate <- struct{}{}
	e.gate <- struct{}{}
	r := <-answer
	line, err := bufio.NewReader(r.Body).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "text_completion")
	leave() // in the middle of a stream
	r.Body.Close()
	close(e.gate)
	require.Equal(t, 200, <-third)
	all.Wait()
	eventually(t, func() bool {
		running, waiting, _, _ := s.scheduler.load()
		left, _ := e.load()
		return running == 0 && waiting == 0 && left == 0
	})
	eventually(t, func() bool { return strings.Count(s.log.String(), "finish=cancelled") == 2 })
}

// One that leaves while it waits makes room.
func TestLeavingTheQueue(t *testing.T) {
	e := says(t, "abc")
	e.gate = make(chan struct{})
	s := newTest(e, func(c *Config) { c.Queue = 1 }).start(t)
	first := make(chan int, 1)
	go func() {
		status, _ := s.post(t, "/v1/completions", `{"prompt": "x"}`)
		first <- status
	}()
	eventually(t, func() bool { running, _, _, _ := s.scheduler.load(); return running == 1 })
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/completions",
		strings.NewReader(`{"prompt": "x"}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(r)
		gone <- err
	}()
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting == 1 })
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting == 0 })
	close(e.gate)
	require.Equal(t, 200, <-first)
}

// Several sequences at a time each get what they would get alone.
func TestSeveralSequences(t *testing.T) {
	e := newScripted(hashed)
	e.limits.Sequences = 5
	e.gate = make(chan struct{})
	alone := serve(t, newScripted(hashed))
	s := serve(t, e)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			fields := fmt.Sprintf(`"prompt": [%d, 9], "max_tokens": %d`, 5+i%7, 1+i%23)
			if i%3 == 0 {
				fields += `, "logit_bias": {"500": 30}`
			}
			require.Equal(t, alone.complete(t, fields), s.complete(t, fields))
		})
	}
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting > 5 })
	close(e.gate)
	all.Wait()
	require.Equal(t, 5, e.most)
}

// A step that fails ends what runs with it, and what comes afterwards is decoded.
func TestFailures(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("the secret cause") },
		"panic": func() error { panic("the secret cause") },
	} {
		t.Run(name, func(t *testing.T) {
			e := says(t, "abc")
			failing := true
			e.fail = func() error {
				if failing {
					return fail()
				}
				return nil
			}
			s := serve(t, e)
			status, body := s.post(t, "/v1/completions", `{"prompt": "x"}`)
			require.Equal(t, 500, status)
			require.Equal(t, "internal_error", faultOf(t, body).Code)
			require.NotContains(t, body, "secret")
			require.Contains(t, s.log.String(), "secret")
			status, _, body = s.send(t, http.MethodGet, "/health", "", nil)
			require.Equal(t, 503, status)
			require.Contains(t, body, "decoding failed")
			e.mu.Lock()
			failing = false
			e.mu.Unlock()
			status, _ = s.post(t, "/v1/completions", `{"prompt": "x"}`)
			require.Equal(t, 200, status)
			status, _, _ = s.send(t, http.MethodGet, "/health", "", nil)
			require.Equal(t, 200, status)
		})
	}
}

// A sequence whose logits leave it no token fails alone: the next one is answered, and the server is as well as before.
func TestLogitsWithoutATokenFailOneRequest(t *testing.T) {
	e := says(t, "abc")
	e.none = func(prompt []int) bool { return len(prompt) > 3 }
	s := serve(t, e)
	status, body := s.post(t, "/v1/completions", `{"prompt": [5, 6, 7, 8, 9]}`)
	require.Equal(t, 500, status)
	require.Equal(t, "internal_error", faultOf(t, body).Code)
	require.NotContains(t, body, "secret")
	require.Contains(t, s.log.String(), "secret")
	status, _, _ = s.send(t, http.MethodGet, "/health", "", nil)
	require.Equal(t, 200, status)
	status, _ = s.post(t, "/v1/completions", `{"prompt": [5, 6]}`)
	require.Equal(t, 200, status)
}

// What is not foreseen ends one request, and not the server.
func TestPanicsOfHandlers(t *testing.T) {
	s := newTest(says(t, "abc"), nil)
	s.now = func() time.Time { return time.Time{} }
	s.newID = func(string) string { panic("the secret cause") }
	s.start(t)
	status, body := s.post(t, "/v1/completions", `{"prompt": "x"}`)
	require.Equal(t, 500, status)
	require.Equal(t, "internal_error", faultOf(t, body).Code)
	require.Contains(t, s.log.String(), "a handler panicked")
	eventually(t, func() bool { running, waiting, _, _ := s.scheduler.load(); return running+waiting == 0 })
}

// A refusing engine takes no prompt that begins with 7.
type refusing struct{ *scripted }

func (e refusing) Admit(prompt []int, o Options) (Sequence, int, error) {
	if prompt[0] == 7 {
		return 0, 0, errors.New("the secret cause")
	}
	return e.scripted.Admit(prompt, o)
}

func TestRefusedByTheEngine(t *testing.T) {
	s := serve(t, refusing{says(t, "abc")})
	status, body := s.post(t, "/v1/completions", `{"prompt": [7]}`)
	require.Equal(t, 500, status)
	require.NotContains(t, body, "secret")
	require.Contains(t, s.log.String(), "the secret cause")
	status, _ = s.post(t, "/v1/completions", `{"prompt": [8]}`)
	require.Equal(t, 200, status)
}

// A failing engine gives NaN as logits to a prompt that begins with 7.
type failing struct{ *scripted }

func (e failing) Step(ctx context.Context) ([]Event, error) {
	events, err := e.scripted.Step(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range events {
		if event.Logits != nil && e.running[event.Sequence].prompt[0] == 7 {
			event.Logits[5] = float32(math.NaN())
		}
	}
	return events, err
}

// Logits of which no token can be chosen end their own request alone.
func TestLogitsOfNoUse(t *testing.T) {
	e := failing{newScripted(hashed)}
	e.limits.Sequences = 2
	e.gate = make(chan struct{})
	s := serve(t, e)
	want := serve(t, newScripted(hashed)).complete(t, `"prompt": [8], "max_tokens": 9, "temperature": 1, "seed": 3`)
	other := make(chan said, 1)
	go func() {
		_, body := s.post(t, "/v1/completions", `{"prompt": [8], "max_tokens": 9, "temperature": 1, "seed": 3}`)
		got, err := readWhole([]byte(body))
		if err != nil {
			t.Error(err)
		}
		other <- got
	}()
	eventually(t, func() bool { running, _, _, _ := s.scheduler.load(); return running == 1 })
	bad := make(chan int, 1)
	go func() {
		status, _ := s.post(t, "/v1/completions", `{"prompt": [7], "temperature": 1}`)
		bad <- status
	}()
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting == 1 })
	close(e.gate)
	require.Equal(t, 500, <-bad)
	require.Equal(t, want, <-other)
	require.Contains(t, s.log.String(), "the logit of token 5 is NaN")
}
