package serve

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Serve answers on a listener until ctx ends. Then requests that come, and those that wait, are refused with 503; what
// is being decoded has the time grace to end, and what has not ended by then is given up. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	decoding, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	go s.scheduler.run(decoding)
	h := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
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
		s.log.Warn("the time to end is over: what is being decoded is given up")
		giveUp()
		<-s.scheduler.done
	}
	// What has ended is still being sent. The listener was open so far, so that clients were told.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.writeTimeout)
	defer cancel()
	if err := h.Shutdown(sending); err != nil {
		return h.Close()
	}
	return nil
}
