package cli

import (
	"errors"

	"github.com/spf13/pflag"

	sessions "amkc/app/engine"
	"amkc/app/front"
	"amkc/app/serve"
	"amkc/compiler"
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/text/draft"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	model modelFlags
	place place
	front front.Serve
	draft string
}

func serveVerb() verb {
	s := &serveFlags{}
	return verb{
		name: "serve", synopsis: "MODEL|DIR [--host HOST] [--port N] [--api-key KEY] [--device ref|cuda]",
		min: 1, max: 1,
		summary: "serve a model with OpenAI's and Anthropic's HTTP APIs",
		details: `
The address that is printed has a page to talk with the model, and APIs below /v1. The first Ctrl-C ends the answers
and then the server; a second one ends it at once. On a GPU, a model is first built into a cache, and found there the
next time.`,
		flags: s.define,
		run:   s.run,
	}
}

func (s *serveFlags) define(f *pflag.FlagSet) {
	front.DefineServe(f, &s.front)
	f.Var(newChoice(&s.draft, "", draft.NGram), "draft",
		"draft tokens from n-grams of each text, and verify several tokens of each per pass, on a GPU; answers stay "+
			"the same")
	s.place.define(f)
	s.place.defineSequences(f)
	s.model.define(f, defaultTarget)
}

func (s *serveFlags) run(c *call) error {
	dir, _, err := checkpoint.Locate(c.args[0])
	if err != nil {
		return err
	}
	if err := s.model.checkDirectory(dir); err != nil {
		return err
	}
	if err := s.model.forModels(c, dir); err != nil {
		return err
	}
	config := s.front.Config(dir, c.stderr, c.json, c.quiet)
	if config.Tokenizer, err = compiler.LoadTokenizer(dir); err != nil {
		return err
	}
	if config.EOS, err = compiler.StopIDs(dir); err != nil {
		return err
	}
	var warnings diag.List
	config.Chat, warnings = compiler.LoadChat(dir)
	c.report(warnings)
	ctx, cancel := interruptible()
	defer cancel()
	// What cannot be listened on is said before anything large is loaded.
	l, err := s.front.Listen(config)
	if err != nil {
		return diag.Errorf(codeListen, "--host", "%v", infile.Reason(err))
	}
	defer l.Close()
	if s.draft != "" {
		if err := s.place.draftSeveral(c, dir); err != nil {
			return err
		}
	}
	o, err := open(ctx, c, s.place, dir, &s.model)
	if err != nil {
		return err
	}
	defer o.Close()
	d, err := o.drafts(s.draft, dir, true)
	if err != nil {
		return err
	}
	b := sessions.Served()
	b.Drafter, b.Pause = d, s.front.Pause()
	config.Model, config.Engine = o.name, o.sequences(b)
	err = s.front.Answer(ctx, l, config, func(url string) error {
		c.payload = struct {
			Device string `json:"device"`
			Build  string `json:"build,omitempty"` // in the cache
			URL    string `json:"url"`
		}{o.device, o.build, url}
		return c.printf("%s answers at %s\n", o.name, url)
	})
	if errors.Is(err, serve.ErrLost) {
		return hostError(dir, err)
	}
	return err
}
