package cli

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"

	"amkc/app/engine"
	"amkc/app/library"
	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/text/chat"
)

// serve answers over HTTP until it is interrupted.
func (c *command) serve(ctx context.Context, args []string) error {
	set := c.flags("serve")
	name := set.String("host", serve.DefaultHost,
		"answer at the address `HOST`, which other machines reach unless it is this one's own")
	port := set.Int("port", serve.DefaultPort, "answer at port `N`; 0: at any that is free")
	key := set.String("api-key", "", "answer requests with the key `KEY` alone; by default what "+serve.KeyVariable+
		" has, which no list of processes shows")
	queue := set.Int("queue", serve.DefaultQueue, "let up to `N` answers wait, and refuse more")
	guess := set.String("draft", "", "draft tokens by `ngram` from each text, and verify several tokens of each "+
		"per pass; answers are the same")
	if err := c.parse(set, args); err != nil {
		return err
	}
	keyGiven, drafts := false, false
	set.Visit(func(f *flag.Flag) {
		keyGiven, drafts = keyGiven || f.Name == "api-key", drafts || f.Name == "draft"
	})
	switch {
	case keyGiven && *key == "":
		return usagef("serve: --api-key is empty; want a key, or no such flag")
	case *name == "":
		return usagef("serve: --host is empty; want an address")
	case *port < 0 || *port > math.MaxUint16:
		return usagef("serve: --port %d; want a number from 0 to %d", *port, math.MaxUint16)
	case *queue < 0:
		return usagef("serve: --queue %d; want a number from 0 on", *queue)
	case !keyGiven:
		*key = os.Getenv(serve.KeyVariable)
	}
	facts, err := c.facts()
	if err != nil {
		return err
	}
	o := engine.Served()
	if drafts {
		if o.Drafter, err = c.drafter("serve", *guess, facts, true); err != nil {
			return err
		}
	}
	config := serve.Config{Model: facts.Model.Name, APIKey: *key, Queue: *queue, Log: c.log()}
	if config.Tokenizer, err = library.ReadTokenizer(c.dir); err != nil {
		return err
	}
	if config.EOS, err = host.StopIDs(c.dir); err != nil {
		return err
	}
	config.Sampling = serve.Defaults(c.dir, config.Log)
	if config.Chat, err = chat.Load(c.dir); err != nil {
		config.Log.Warn("messages are refused, as no chat template can be used", "reason", infile.Describe(err))
	}
	// What cannot be listened on is said before anything large is loaded.
	l, err := serve.Listen(*name, *port, config.Log)
	if err != nil {
		return usagef("serve: %s", infile.Reason(err))
	}
	defer l.Close()
	return c.withSession(ctx, func(s *host.Session) error {
		config.Engine = engine.New(s, o)
		server := serve.New(config)
		server.Take(l)
		url := "http://" + l.Addr().String()
		text := fmt.Sprintf("%s answers at %s\n", config.Model, url)
		if err := c.print(map[string]any{"version": 1, "url": url}, text); err != nil {
			return err
		}
		return server.Serve(ctx, serve.DefaultGrace)
	})
}

// log is what is told of requests.
func (c *command) log() *slog.Logger {
	if c.json {
		return slog.New(slog.NewJSONHandler(c.stderr, nil))
	}
	return slog.New(slog.NewTextHandler(c.stderr, nil))
}
