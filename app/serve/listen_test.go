package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listen runs a server as a command line does. stop asks it to end, and ended has what it returns.
func (s *testServer) listen(t *testing.T, grace time.Duration) (stop func(), ended chan error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.url = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	s.Take(answerAt(l, s.Server.log))
	go func() { ended <- s.Serve(ctx, grace) }()
	return stop, ended
}

// When a server is told to end, what it has accepted is answered, and what is new is refused: of a request with several
// answers some of which wait, of a stream that has begun to wait, and of one that is whole and waits.
func TestShutdown(t *testing.T) {
	e := says(t, "abcdefgh")
	e.gate = make(chan struct{})
	s := newTest(e, nil)
	s.pingEvery = 10 * time.Millisecond
	stop, ended := s.listen(t, time.Minute)
	type result struct {
		status int
		body   string
	}
	ask := func(fields string, waiting int) chan result {
		done := make(chan result, 1)
		go func() {
			status, body := s.post(t, "/v1/completions", `{"prompt": "x", `+fields+`}`)
			done <- result{status, body}
		}()
		eventually(t, func() bool { _, w, _, _ := s.scheduler.load(); return w == waiting })
		return done
	}
	two := ask(`"n": 2`, 1) // one of which is decoded
	whole := ask(`"n": 1`, 2)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/completions",
		strings.NewReader(`{"prompt": "x", "stream": true}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	stream, err := http.DefaultClient.Do(r) // which has pinged
	require.NoError(t, err)
	defer stream.Body.Close()
	stop()
	eventually(t, func() bool { _, _, _, stopping := s.scheduler.load(); return stopping })
	status, _, body := s.send(t, http.MethodGet, "/health", "", nil)
	require.Equal(t, 503, status)
	require.Contains(t, body, "shutting down")
	status, body = s.post(t, "/v1/completions", `{"prompt": "x"}`)
	require.Equal(t, 503, status)
	require.Equal(t, "shutting_down", faultOf(t, body).Code)
	close(e.gate)
	for done, n := range map[chan result]int{two: 2, whole: 1} {
		answered := <-done
		require.Equal(t, 200, answered.status, answered.body)
		require.Equal(t, n, strings.Count(answered.body, "abcdefgh"))
	}
	all, err := io.ReadAll(stream.Body)
	require.NoError(t, err)
	text, finish := joined(t, string(all))
	require.Equal(t, "abcdefgh", text)
	require.Equal(t, finishStop, finish)
	require.NoError(t, <-ended)
	require.Contains(t, s.log.String(), "running=1 waiting=3")
	require.Regexp(t, "level=WARN msg=request .*status=503", s.log.String())
	require.NotContains(t, s.log.String(), "level=ERROR")
	_, err = http.Get(s.url)
	require.Error(t, err, "nobody listens")
}

// What does not end in its time is cancelled.
func TestShutdownWithoutGrace(t *testing.T) {
	e := says(t, "abc")
	e.gate = make(chan struct{})
	s := newTest(e, nil)
	stop, ended := s.listen(t, time.Millisecond)
	done := make(chan int, 1)
	go func() {
		status, _ := s.post(t, "/v1/completions", `{"prompt": "x"}`)
		done <- status
	}()
	eventually(t, func() bool { running, _, _, _ := s.scheduler.load(); return running == 1 })
	stop()
	require.Equal(t, 503, <-done)
	require.NoError(t, <-ended)
	require.Contains(t, s.log.String(), "is cancelled")
	require.Contains(t, s.log.String(), `tool_calls="Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4"`)
	require.Contains(t, s.log.String(), "thoughts_begin_with=none")
}

// A listener that fails ends the server with its error.
func TestListenerFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	s := newTest(says(t, "x"), nil)
	s.Take(answerAt(l, s.Server.log))
	require.ErrorIs(t, s.Serve(t.Context(), time.Second), net.ErrClosed)
}

// What is wrong with an address is said in the words of the system alone.
func TestListen(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	l, err := Listen("127.0.0.1", 0, log)
	require.NoError(t, err)
	defer l.Close()
	_, err = Listen("127.0.0.1", l.Addr().(*net.TCPAddr).Port, log)
	require.EqualError(t, err, l.Addr().String()+": address already in use")
	_, err = Listen("203.0.113.7", 0, log)
	require.EqualError(t, err, "203.0.113.7:0: cannot assign requested address")
}

// From the first moment on a port answers: that the model is being loaded, and then as the server does.
func TestLoading(t *testing.T) {
	s := newTest(says(t, "x"), func(c *Config) { c.APIKey = "k" })
	p, err := Listen("127.0.0.1", 0, s.Server.log)
	require.NoError(t, err)
	s.url = "http://" + p.Addr().String()
	status, header, body := s.send(t, http.MethodGet, "/health", "", nil)
	require.Equal(t, 503, status)
	require.Equal(t, "5", header.Get("Retry-After"))
	require.JSONEq(t, `{"status": "loading", "running": 0, "waiting": 0}`, body)
	for _, route := range s.routes() {
		if route.path == "/health" {
			continue
		}
		path := strings.NewReplacer("{model...}", "m", "{$}", "").Replace(route.path)
		status, header, body = s.send(t, route.method, path, "", nil)
		require.Equal(t, 503, status, path)
		require.Equal(t, "5", header.Get("Retry-After"), path)
		require.Equal(t, "loading", codeOf(t, path, body), path)
	}
	s.Take(p)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, time.Minute) }()
	status, _, body = s.send(t, http.MethodGet, "/health", "", nil)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"status": "ok", "running": 0, "waiting": 0}`, body)
	status, _ = s.post(t, "/v1/completions", `{"prompt": "x"}`)
	require.Equal(t, 401, status)
	stop()
	require.NoError(t, <-ended)
}

// What fails while the model is loaded ends the port.
func TestLoadingEnds(t *testing.T) {
	p, err := Listen("127.0.0.1", 0, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	url := "http://" + p.Addr().String() + "/health"
	r, err := http.Get(url)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.NoError(t, p.Close())
	_, err = http.Get(url)
	require.Error(t, err, "nobody listens")
}

// A server that only its machine reaches is not reached by the names of pages elsewhere.
func TestHosts(t *testing.T) {
	s := newTest(says(t, "x"), nil)
	s.local = true
	s.start(t)
	for host, own := range map[string]bool{"": true, "localhost": true, "localhost:80": true, "127.0.0.1:8080": true,
		"[::1]": true, "[::1]:80": true, "models.example": false, "models.example:8080": false, "[": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
		require.NoError(t, err)
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		want := http.StatusMisdirectedRequest
		if own {
			want = http.StatusOK
		}
		require.Equal(t, want, answer.StatusCode, host)
	}
}

// What still waits when the time is over is cancelled too.
func TestShutdownEndsWhatWaits(t *testing.T) {
	e := says(t, "abc")
	e.gate = make(chan struct{})
	s := newTest(e, nil)
	stop, ended := s.listen(t, time.Millisecond)
	done := make(chan int, 1)
	go func() {
		status, _ := s.post(t, "/v1/completions", `{"prompt": "x", "n": 3}`)
		done <- status
	}()
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting == 2 })
	stop()
	require.Equal(t, 503, <-done)
	require.NoError(t, <-ended)
}

// A server whose engine is lost tells those who wait, and ends with the reason.
func TestLost(t *testing.T) {
	e := says(t, "abc")
	e.gate = make(chan struct{})
	e.fail = func() error { return fmt.Errorf("%w: an illegal address", ErrLost) }
	s := newTest(e, nil)
	_, ended := s.listen(t, time.Minute)
	statuses := make(chan int, 2)
	for i := range 2 {
		go func() {
			status, _ := s.post(t, "/v1/completions", `{"prompt": "x"}`)
			statuses <- status
		}()
		eventually(t, func() bool { running, waiting, _, _ := s.scheduler.load(); return running+waiting == i+1 })
	}
	close(e.gate)
	require.Equal(t, []int{500, 500}, []int{<-statuses, <-statuses})
	require.ErrorIs(t, <-ended, ErrLost)
	_, err := http.Get(s.url)
	require.Error(t, err, "nobody listens")
}
