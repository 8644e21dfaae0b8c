package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// A secret is compared in a time that does not depend on how much of a guess is right.
type secret struct{ digest [sha256.Size]byte }

// newSecret is nil for no secret.
func newSecret(text string) *secret {
	if text == "" {
		return nil
	}
	return &secret{sha256.Sum256([]byte(text))}
}

func (s *secret) is(guess string) bool {
	digest := sha256.Sum256([]byte(guess))
	return subtle.ConstantTimeCompare(s.digest[:], digest[:]) == 1
}

// guarded answers a route for requests of its method with the API key.
func (s *Server) guarded(to route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.local && !isOwn(r.Host) {
			refuse(w, r, errHost)
			return
		}
		if s.preflight(w, r, to.method) {
			return
		}
		if s.key != nil && !to.open {
			scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			bearer := strings.EqualFold(scheme, "Bearer") && s.key.is(strings.TrimSpace(given))
			if !bearer && !s.key.is(r.Header.Get("X-Api-Key")) {
				refuse(w, r, errKey)
				return
			}
		}
		if r.Method != to.method && !(r.Method == http.MethodHead && to.method == http.MethodGet) {
			w.Header().Set("Allow", to.method)
			refuse(w, r, &apiError{status: http.StatusMethodNotAllowed, kind: kindRequest, code: "method_not_allowed",
				message: "want " + to.method})
			return
		}
		to.answer(w, r)
	})
}

// statusGone is what log and metrics have for a request whose client went away before it was answered.
const statusGone = 499

// watched gives a request its id and its record, logs and counts it, and answers for a handler that panics. path is
// what metrics call it.
func (s *Server) watched(path string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(raw http.ResponseWriter, r *http.Request) {
		w := &answer{ResponseWriter: raw, timeout: s.writeTimeout}
		w.hurry()
		rec := &record{id: requestID(r), start: s.now()}
		r = r.WithContext(rec.in(r.Context()))
		w.Header().Set("X-Request-Id", rec.id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		s.allowOrigin(w, r)
		defer func() {
			if rec.free != nil {
				rec.free()
			}
			p, begun := recover(), w.status != 0
			if p != nil {
				s.log.Error("a handler panicked", "request_id", rec.id, "panic", fmt.Sprintf("%T", p),
					"stack", string(debug.Stack()))
				if !begun {
					refuse(w, r, errInternal)
				}
			}
			if w.status == 0 {
				w.status = statusGone
			}
			took := s.now().Sub(rec.start)
			s.metrics.answered(path, w.status, rec.ends(), took)
			rec.log(s.log, r, w.status, took)
			if p != nil && begun {
				panic(http.ErrAbortHandler) // so that the client sees that its answer is not whole
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// An answer is a ResponseWriter that knows its status, and gives each write a time.
type answer struct {
	http.ResponseWriter
	status  int // 0: nothing is sent
	timeout time.Duration
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.hurry()
	return a.ResponseWriter.Write(p)
}

// hurry gives what is written next its time. Writers of tests have no deadlines; those of connections do.
func (a *answer) hurry() {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.timeout))
}

// send answers with a whole body. What a client that has gone does not get is nobody's loss.
func send(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
