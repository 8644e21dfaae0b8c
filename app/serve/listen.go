package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"amkc/runtime/infile"
	"amkc/text/sampling"
)

// Defaults of command lines.
const (
	DefaultHost  = "127.0.0.1"
	DefaultPort  = 8080
	DefaultQueue = 64
	DefaultGrace = 30 * time.Second
	KeyVariable  = "AMKC_API_KEY" // of the environment
)

// Defaults returns the sampling options for requests without their own: those of generation_config.json in the
// directory of a model or a build. If that file cannot be used, Defaults logs the reason and returns temperature 1.
func Defaults(dir string, log *slog.Logger) sampling.Options {
	o, err := sampling.ReadConfig(dir)
	if err != nil {
		o = sampling.Greedy()
		o.Temperature = 1
		log.Warn("requests that do not say how tokens are chosen get temperature 1", "reason", infile.Describe(err))
	}
	return o
}

// A Port is an address that answers requests with 503 until a server takes it ([Server.Take]), so that a client of
// /health can distinguish a loading model from a dead process.
type Port struct {
	net.Listener
	http   *http.Server
	server atomic.Pointer[http.Handler] // nil: it is loading
	failed chan error                   // of capacity 1: why nothing is answered any more
}

// Listen opens an address and answers there. Its error names the address and the problem.
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

// Close ends the port and all its requests.
func (p *Port) Close() error { return p.http.Close() }

// ServeHTTP passes requests to the server. Without a server it answers 503 and does not read the body.
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
	errLoading.send(w, r)
}

// Take makes the server answer at a port. Requests wait in the queue until [Server.Serve].
//
// Without an API key, a port on a loopback address answers only requests whose host is an address or localhost: this
// prevents DNS rebinding by a page in a browser.
func (s *Server) Take(p *Port) {
	if s.key == nil {
		if s.local = isLocal(p.Addr()); !s.local {
			s.log.Warn("anyone who reaches this address may use the model, as there is no API key",
				"address", p.Addr().String())
		}
	}
	if s.key == nil && slices.Contains(s.origins, AnyOrigin) {
		s.log.Warn("any page in a browser that reaches this address may use the model, as there is no API key")
	}
	if s.chat != nil {
		calls, thoughts := s.reply.Names()
		s.log.Info("forms of the chat template", "tool_calls", cmp.Or(calls, "none"),
			"thoughts_begin_with", cmp.Or(thoughts, "none"))
	}
	answers := s.Handler()
	p.server.Store(&answers)
	s.port = p
}

// Serve handles requests at the port that the server has taken, until ctx ends. Then new requests are refused with
// 503; others have the time grace to finish, and are then cancelled. Serve can be called once. Its error is that of the
// listener, or [ErrLost] with what the engine said.
func (s *Server) Serve(ctx context.Context, grace time.Duration) error {
	p := s.port
	decoding, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go s.scheduler.run(decoding)
	select {
	case err := <-p.failed:
		cancel()
		<-s.scheduler.done
		return err
	case <-s.scheduler.done:
		_, _, lost, _ := s.scheduler.load()
		return errors.Join(lost, s.close(ctx))
	case <-ctx.Done():
	}
	s.scheduler.stop()
	running, waiting, _, _ := s.scheduler.load()
	s.log.Info("shutting down", "running", running, "waiting", waiting, "grace_seconds", grace.Seconds())
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-s.scheduler.done:
	case <-late.C:
		s.log.Warn("the time to end is over: what is being decoded is cancelled")
		cancel()
		<-s.scheduler.done
	}
	return s.close(ctx)
}

// close closes the port. What has ended is still being sent. The port was open so far, so that clients were told.
func (s *Server) close(ctx context.Context) error {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.writeTimeout)
	defer cancel()
	if err := s.port.http.Shutdown(sending); err != nil {
		return s.port.Close()
	}
	return nil
}

func isLocal(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// isOwn reports whether the Host of a request is an address, or localhost, rather than a name.
func isOwn(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || host == ""
}
