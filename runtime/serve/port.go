package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
)

// A Port is an address at which requests are answered from the first moment on: with 503 until a server takes it
// ([Server.Take]), so that who watches /health can tell a model that loads from a process that has ended.
type Port struct {
	net.Listener
	http   *http.Server
	server atomic.Pointer[http.Handler] // nil: it is loading
	failed chan error                   // of capacity 1: why nothing is answered any more
}

// Listen opens an address and answers at it. Its error says which it is and what is the matter with it.
func Listen(host string, port int, log *slog.Logger) (*Port, error) {
	at := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", at)
	var call *net.OpError
	if errors.As(err, &call) {
		reason := call.Err
		var system *os.SyscallError
		if errors.As(reason, &system) {
			reason = system.Err
		}
		return nil, fmt.Errorf("%s: %w", at, reason)
	}
	if err != nil {
		return nil, err
	}
	return answerAt(l, log), nil
}

// answerAt answers at a listener.
func answerAt(l net.Listener, log *slog.Logger) *Port {
	p := &Port{Listener: l, failed: make(chan error, 1)}
	p.http = &http.Server{
		Handler: p, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() { p.failed <- p.http.Serve(l) }()
	return p
}

// Close ends the port, and all that is being answered there.
func (p *Port) Close() error { return p.http.Close() }

// ServeHTTP answers by the server, or that there is none yet. No body is read for that.
func (p *Port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := p.server.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path == "/health" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		w.Header().Set("Retry-After", strconv.Itoa(errLoading.retry))
		sendHealth(w, http.StatusServiceUnavailable, "loading", 0, 0)
		return
	}
	errLoading.send(w)
}
