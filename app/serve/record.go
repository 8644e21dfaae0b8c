package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A record is what log and metrics say of a request. Nothing of its text is in there.
type record struct {
	id    string // X-Request-Id
	start time.Time

	mu         sync.Mutex
	prompt     int // tokens
	cached     int // of those
	completion int
	stream     bool
	answers    int      // that were asked for
	finishes   []string // of those that have ended: stop or length
	code       string   // of the error
	cause      string   // of an error that the client is told nothing of

	free func() // the room of the body
}

type recordKey struct{}

// recordOf returns the record of a request, which the server has put there.
func recordOf(r *http.Request) *record {
	return r.Context().Value(recordKey{}).(*record)
}

func (r *record) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// holds notes how many bytes of a body an intake has room for, up to the end of the request.
func (r *record) holds(in *intake, n int) { r.free = func() { in.free(n) } }

// asks notes what a completion asks for.
func (r *record) asks(prompt, answers int, stream bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompt, r.answers, r.stream = prompt, answers, stream
}

// reads notes a prompt that is read for what it leaves.
func (r *record) reads(prompt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompt += prompt
}

// begin notes how many tokens of the prompt need not be decoded.
func (r *record) begin(cached int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cached += cached
}

// usage is what the answer has cost so far.
func (r *record) usage() usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return usage{r.prompt, r.completion, r.prompt + r.completion, promptDetails{r.cached}}
}

// token counts one of any answer.
func (r *record) token() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.completion++
}

// ends are how the answers to a completion ended; none where none were asked for.
func (r *record) ends() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endings()
}

func (r *record) endings() []string {
	all := slices.Clone(r.finishes)
	for len(all) < r.answers {
		if r.code != "" {
			all = append(all, "error")
		} else {
			all = append(all, "cancelled")
		}
	}
	return all
}

// finish notes the end of an answer.
func (r *record) finish(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finishes = append(r.finishes, reason)
}

// fail notes the error that a client is told, and its cause.
func (r *record) fail(told *apiError, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.code = told.code; error(told) != err {
		r.cause = err.Error()
	}
}

// log writes the line of a request that has been answered.
func (r *record) log(to *slog.Logger, req *http.Request, status int, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	attrs := []slog.Attr{
		slog.String("request_id", r.id), slog.String("method", req.Method), slog.String("path", req.URL.Path),
		slog.Int("status", status), slog.String("client", req.RemoteAddr),
		slog.Float64("seconds", took.Seconds()),
	}
	if r.prompt > 0 {
		attrs = append(attrs, slog.Int("prompt_tokens", r.prompt), slog.Int("cached_tokens", r.cached))
	}
	if ends := r.endings(); len(ends) > 0 {
		slices.Sort(ends)
		attrs = append(attrs, slog.Int("completion_tokens", r.completion), slog.Bool("stream", r.stream),
			slog.Int("answers", len(ends)), slog.String("finish", strings.Join(slices.Compact(ends), ",")))
	}
	if r.code != "" {
		attrs = append(attrs, slog.String("code", r.code))
	}
	if r.cause != "" {
		attrs = append(attrs, slog.String("error", r.cause))
	}
	level := slog.LevelInfo
	switch {
	case status == http.StatusServiceUnavailable: // as probes get it whenever a server starts or ends
		level = slog.LevelWarn
	case status >= http.StatusInternalServerError:
		level = slog.LevelError
	}
	to.LogAttrs(req.Context(), level, "request", attrs...)
}

// maxRequestID is the most characters that an id of a client may have.
const maxRequestID = 128

// requestID is that of the client, if it is one that can be written anywhere, or a new one.
func requestID(r *http.Request) string {
	given := r.Header.Get("X-Request-Id")
	if given == "" || len(given) > maxRequestID {
		return newID("req-")
	}
	for _, c := range []byte(given) {
		if c <= ' ' || c >= 0x7F || c == '"' || c == '\\' {
			return newID("req-")
		}
	}
	return given
}

func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}
