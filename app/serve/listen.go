package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"amkc/runtime/infile"
	"amkc/text/sampling"
)

// What command lines take where nothing else is said.
const (
	DefaultHost  = "127.0.0.1"
	DefaultPort  = 8080
	DefaultQueue = 64
	DefaultGrace = 30 * time.Second
	KeyVariable  = "AMKC_API_KEY" // of the environment
)

// Defaults returns how tokens are chosen where a request does not say: as generation_config.json says, in the directory
// of a model or a build. What cannot be followed is told to the log, and tokens are drawn at temperature 1.
func Defaults(dir string, log *slog.Logger) sampling.Options {
	o, err := sampling.ReadConfig(dir)
	if err != nil {
		o = sampling.Greedy()
		o.Temperature = 1
		log.Warn("requests that do not say how tokens are chosen get temperature 1", "reason", infile.Describe(err))
	}
	return o
}

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

// Take has the server answer at a port, which has been loading. What is asked waits in the queue until [Server.Serve].
//
// A port that only this machine reaches answers requests for an address or for localhost alone, unless there is an
// API key: a page in a browser may have a name of its own lead here.
func (s *Server) Take(p *Port) {
	if s.key == nil {
		if s.local = isLocal(p.Addr()); !s.local {
			s.log.Warn("anyone who reaches this address may use the model, as there is no API key",
				"address", p.Addr().String())
		}
	}
	if s.chat != nil {
		calls, thoughts := s.reply.Names()
		s.log.Info("what is read out of answers, by the chat template", "calls_of", calls, "thoughts_behind", thoughts)
	}
	answers := s.Handler()
	p.server.Store(&answers)
	s.port = p
}

// Serve decodes what is asked at the port that the server has taken, until ctx ends. Then requests that come, and those
// that wait, are refused with 503; what is being decoded has the time grace to end, and what has not ended by then is
// cancelled. A server serves once.
func (s *Server) Serve(ctx context.Context, grace time.Duration) error {
	p := s.port
	decoding, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	go s.scheduler.run(decoding)
	select {
	case err := <-p.failed:
		giveUp()
		<-s.scheduler.done
		return err
	case <-ctx.Done():
	}
	running, waiting, _, _ := s.scheduler.load()
	s.log.Info("shutting down", "running", running, "refused", waiting, "grace_seconds", grace.Seconds())
	s.scheduler.stop()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-s.scheduler.done:
	case <-late.C:
		s.log.Warn("the time to end is over: what is being decoded is cancelled")
		giveUp()
		<-s.scheduler.done
	}
	// What has ended is still being sent. The port was open so far, so that clients were told.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.writeTimeout)
	defer cancel()
	if err := p.http.Shutdown(sending); err != nil {
		return p.Close()
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
