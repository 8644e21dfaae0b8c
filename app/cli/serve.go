package cli

import (
	"context"
	"flag"
	"fmt"

	"amkc/app/engine"
	"amkc/app/front"
	"amkc/app/library"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/text/chat"
)

// serve answers over HTTP until it is interrupted.
func (c *command) serve(ctx context.Context, args []string) error {
	set := c.flags("serve")
	var f front.Serve
	front.DefineServe(set, &f)
	guess := set.String("draft", "", "draft tokens by `ngram` from each text, and verify several tokens of each "+
		"per pass; answers are the same")
	if err := c.parse(set, args); err != nil {
		return err
	}
	drafts := false
	set.Visit(func(f *flag.Flag) { drafts = drafts || f.Name == "draft" })
	facts, err := c.facts()
	if err != nil {
		return err
	}
	o := engine.Served()
	o.Pause = f.Pause()
	if drafts {
		if o.Drafter, err = c.drafter("serve", *guess, facts, true); err != nil {
			return err
		}
	}
	config := f.Config(c.dir, c.stderr, c.json, false)
	config.Model = facts.Model.Name
	if config.Tokenizer, err = library.ReadTokenizer(c.dir); err != nil {
		return err
	}
	if config.EOS, err = host.StopIDs(c.dir); err != nil {
		return err
	}
	if config.Chat, err = chat.Load(c.dir); err != nil {
		config.Log.Warn("messages are refused, as no chat template can be used", "reason", infile.Describe(err))
	}
	// What cannot be listened on is said before anything large is loaded.
	l, err := f.Listen(config)
	if err != nil {
		return usagef("serve: %s", infile.Reason(err))
	}
	defer l.Close()
	return c.withSession(ctx, func(s *host.Session) error {
		config.Engine = engine.New(s, o)
		return f.Answer(ctx, l, config, func(url string) error {
			text := fmt.Sprintf("%s answers at %s\n", config.Model, url)
			return c.print(map[string]any{"version": 1, "url": url}, text)
		})
	})
}
