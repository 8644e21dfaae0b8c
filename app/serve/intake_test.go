package serve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// filled is a body of 4 MB: one text repeated within another.
func filled(before, part, after string) string {
	n := (4<<20 - len(before) - len(after)) / len(part)
	return before + strings.Repeat(part, n-1) + strings.TrimSuffix(part, ",") + after
}

// answer has a server answer a request without a network, so that what it allocates is its own.
func (s *testServer) answer(t testing.TB, path, body string) (status int, answer string) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Bodies of 4 MB that are refused cost a few times their size, whatever they are full of. Encoding the first one would
// take 225 MB, and reading a list of empty objects 400.
func TestRefusedBodies(t *testing.T) {
	const user = `{"messages": [{"role": "user", "content": "x"}], `
	s := serve(t, says(t, "x"))
	for path, bodies := range map[string][]string{
		"/v1/completions": {filled(`{"prompt": "`, "a", `"}`), filled(`{"prompt": ["x", "`, "a ", `"]}`),
			filled(`{"prompt": [`, "1,", `]}`), filled(`{"prompt": [[`, "1,", `]]}`),
			filled(`{"prompt": [`, `"",`, `]}`),
			filled(`{"prompt": [`, `[],`, `]}`), filled(`{"prompt": "x", "stop": [`, `"",`, `]}`),
			filled(`{"prompt": "x", "logit_bias": {`, `"1":1,`, `}}`)},
		"/v1/chat/completions": {filled(`{"messages": [{"role": "user", "content": "`, "a", `"}]}`),
			filled(`{"messages": [`, "{},", `]}`), filled(`{"messages": [{"role": "user", "content": [`, `{},`, `]}]}`),
			filled(`{"messages": [{"role": "user", "content": "x", "y": [`, `0,`, `]}]}`),
			filled(user+`"tools": [`, `{},`, `]}`), filled(user+`"modalities": [`, `"",`, `]}`),
			filled(user+`"chat_template_kwargs": {"thinking": [`, `[],`, `]}}`),
			filled(user+`"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": [`, `0,`,
				`]}}}}`),
			filled(user+`"response_format": {"type": "json_schema", "json_schema": {"schema": {"anyOf": [`, `{},`,
				`]}}}}`),
			filled(user+`"tool_choice": "required", "tools": [{"type": "function", "function": {"name": "`, "a",
				`"}}]}`)},
		"/v1/responses": {filled(`{"input": "`, "a", `"}`), filled(`{"input": [`, "{},", `]}`),
			filled(`{"input": "x", "instructions": "`, "a", `"}`), filled(`{"input": "x", "include": [`, `"",`, `]}`),
			filled(`{"input": "x", "tools": [`, `{},`, `]}`)},
		"/v1/embeddings": {filled(`{"input": "`, "a", `"}`), filled(`{"input": [`, "1,", `]}`),
			filled(`{"input": [`, `"",`, `]}`)},
		"/tokenize": {filled(`{"prompt": "`, "a", `"}`),
			filled(`{"messages": [{"role": "user", "content": "`, "a", `"}]}`)},
		"/detokenize": {filled(`{"tokens": [`, "1,", `]}`)},
	} {
		for _, body := range bodies {
			what := path + " " + body[:80]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status, said := s.answer(t, path, body)
			runtime.ReadMemStats(&after)
			require.Equal(t, 400, status, what)
			require.LessOrEqual(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(160), "%s: %s", what, said)
		}
	}
}

// A place in the intake, taken by a test.
func (in *intake) take(t *testing.T, size int) (leave func()) {
	leave, err := in.enter(t.Context(), size)
	require.NoError(t, err)
	return leave
}

// queued has a turn wait, which ends as soon as it begins, and returns how it has ended.
func (in *intake) queued(ctx context.Context, t *testing.T, size int) chan error {
	before := in.waits()
	ended := make(chan error, 1)
	go func() {
		leave, err := in.enter(ctx, size)
		if err == nil {
			leave()
		}
		ended <- err
	}()
	eventually(t, func() bool { return in.waits() == before+1 })
	return ended
}

func (in *intake) waits() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.waiting)
}

// What is worked on has a number of slots and of bytes, and what waits has its order and an end.
func TestIntake(t *testing.T) {
	in := newIntake(100, 2, 2)
	one, two := in.take(t, 10), in.take(t, 10)
	third := in.queued(t.Context(), t, 10)
	one()
	require.NoError(t, <-third)
	two()

	large := in.take(t, 95)
	second := in.queued(t.Context(), t, 10) // there is a slot, and not the bytes
	fits := in.queued(t.Context(), t, 1)    // it would fit, and it is not its turn
	_, err := in.enter(t.Context(), 1)
	require.Equal(t, errFull, err, "two wait")
	large()
	require.NoError(t, <-second)
	require.NoError(t, <-fits)

	large = in.take(t, 1000) // as much as there is
	gone, leave := context.WithCancel(t.Context())
	left := in.queued(gone, t, 100)
	next := in.queued(t.Context(), t, 1)
	leave()
	require.Equal(t, errGone, <-left)
	large()
	require.NoError(t, <-next)
	require.Zero(t, in.bytes+in.working+in.waits(), "nothing is left")
}

// A client that goes away while its turn comes returns it.
func TestIntakeGone(t *testing.T) {
	in := newIntake(100, 1, 64)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 200 { // of a turn that has come, and a context that has ended, either is taken
		if leave, err := in.enter(gone, 1); err == nil {
			leave()
		} else {
			require.Equal(t, errGone, err)
		}
	}
	require.Zero(t, in.bytes+in.working+in.waits())
}

// Every path that reads a body waits for its turn, is refused where too many wait, and where too many bytes are there.
func TestEveryBodyWaits(t *testing.T) {
	s := newTest(says(t, "x"), nil)
	s.intake = newIntake(1<<10, 1, 1)
	paths := 0
	for _, route := range s.routes() {
		if route.method != http.MethodPost {
			continue
		}
		paths++
		leave := s.intake.take(t, 1)
		waits := s.intake.queued(t.Context(), t, 1)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, route.path, strings.NewReader(`{}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, 429, w.Code, route.path)
		require.Equal(t, "queue_full", codeOf(t, route.path, w.Body.String()))
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		leave()
		require.NoError(t, <-waits)

		require.True(t, s.intake.hold(s.intake.most-1))
		status, body := s.answer(t, route.path, `{}`)
		require.Equal(t, 429, status, route.path)
		require.Equal(t, "queue_full", codeOf(t, route.path, body))
		s.intake.free(s.intake.most - 1)
		status, body = s.answer(t, route.path, `{}`)
		require.Equal(t, 400, status, "%s: %s", route.path, body)
		require.Zero(t, s.intake.held+s.intake.bytes+s.intake.working, "nothing is left of a request")
	}
	require.Equal(t, 8, paths)
}

// A client that goes away while it waits for its turn is sent nothing, and is not an error.
func TestGoneBeforeItsTurn(t *testing.T) {
	s := newTest(says(t, "x"), nil)
	s.intake = newIntake(1<<10, 1, 1)
	defer s.intake.take(t, 1)()
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/tokenize", strings.NewReader(`{"prompt": "x"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		s.Handler().ServeHTTP(w, r)
		close(done)
	}()
	eventually(t, func() bool { return s.intake.waits() == 1 })
	leave()
	<-done
	require.Empty(t, w.Body.String())
	require.Contains(t, s.log.String(), "status=499")
	require.NotContains(t, s.log.String(), "level=ERROR")
}

// Answers take their places in the queue before what they begin with is computed, so that no more wait for that.
func TestPlacesBeforeMasks(t *testing.T) {
	e := says(t, "{}")
	s := newTest(e, func(c *Config) { c.Queue = 1 })
	for range cap(s.maskRoom) { // requests for a form wait
		s.maskRoom <- struct{}{}
	}
	s.start(t)
	const body = `{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_object"}}`
	done := make(chan int, 2)
	for range 2 {
		go func() {
			status, _ := s.post(t, "/v1/chat/completions", body)
			done <- status
		}()
	}
	eventually(t, func() bool {
		s.scheduler.mu.Lock()
		defer s.scheduler.mu.Unlock()
		return s.scheduler.reserved == 2
	})
	status, said := s.post(t, "/v1/chat/completions", body)
	require.Equal(t, 429, status)
	require.Equal(t, "queue_full", faultOf(t, said).Code)
	for range cap(s.maskRoom) {
		<-s.maskRoom
	}
	require.Equal(t, 200, <-done)
	require.Equal(t, 200, <-done)
	require.Zero(t, s.scheduler.reserved)
}

// Of a text with more tokens than the context has positions no more are encoded, also where /tokenize only counts them,
// and one that has just as many is what it was.
func TestTokensUpToTheContext(t *testing.T) {
	s := serve(t, says(t, "x"))
	fits := strings.Repeat(" x", 254)
	require.Len(t, idsOf(t, fits), 254)
	for _, path := range []string{"/tokenize", "/v1/completions"} {
		status, body := s.answer(t, path, `{"prompt": "`+fits+` x x"}`)
		require.Equal(t, 400, status)
		require.Equal(t, "context_length_exceeded", faultOf(t, body).Code)
		require.Equal(t, "this model's maximum context length is 256 tokens, and the prompt has more than 256 tokens, "+
			"after which encoding stopped", faultOf(t, body).Message)
	}
	status, body := s.answer(t, "/tokenize", `{"prompt": "`+fits+` x"}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"count":256,`)
}
