package front

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"amkc/app/serve"
)

// Config is what the flags say of a server of the model in a directory, whose log is w.
func (s *Serve) Config(dir string, w io.Writer, json, quiet bool) serve.Config {
	o := &slog.HandlerOptions{}
	if quiet {
		o.Level = slog.LevelError
	}
	log := slog.New(slog.NewTextHandler(w, o))
	if json {
		log = slog.New(slog.NewJSONHandler(w, o))
	}
	key := s.APIKey
	if key == "" {
		key = os.Getenv(serve.KeyVariable)
	}
	return serve.Config{Aliases: s.Aliases, Origins: s.Origins, APIKey: key, Queue: s.Queue, Log: log,
		Sampling: serve.Defaults(dir, log)}
}

// Listen is called before anything large is loaded: what cannot be listened on is said at once.
func (s *Serve) Listen(config serve.Config) (*serve.Port, error) {
	return serve.Listen(s.Host, s.Port, config.Log)
}

// Answer serves what l accepts until ctx ends. ready is called with the address once requests are answered.
func (s *Serve) Answer(ctx context.Context, l *serve.Port, config serve.Config, ready func(url string) error) error {
	server := serve.New(config)
	server.Take(l)
	if err := ready("http://" + l.Addr().String()); err != nil {
		return err
	}
	return server.Serve(ctx, time.Duration(s.Grace)*time.Second)
}
