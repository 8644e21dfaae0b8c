package cli

import (
	"context"
	"errors"
	"time"

	"amkc/app/dialogue"
	"amkc/app/front"
	"amkc/app/library"
	"amkc/runtime/host"
	"amkc/runtime/progress"
	"amkc/text/chat"
	"amkc/text/sampling"
)

// chat holds a conversation.
func (c *command) chat(ctx context.Context, args []string) error {
	set := c.flags("chat")
	o := dialogue.Config{Now: time.Now(), In: c.stdin, Out: c.stdout, Err: c.stderr,
		Interactive: progress.IsTerminal(c.stdout) && dialogue.IsTerminal(c.stdin)}
	set.StringVar(&o.System, "system", "", "begin with the system message `TEXT`")
	set.IntVar(&o.MaxTokens, "max-tokens", 0, "answer with up to `N` tokens; by default as many as there is room for")
	set.BoolVar(&o.Stats, "stats", false, "say after each answer how many tokens a second it had")
	choose := &sampling.Flags{}
	front.DefineSampling(set, choose, false)
	if err := c.parse(set, args); err != nil {
		return err
	}
	switch {
	case c.json:
		return usagef("chat: --json is for single answers; want run --messages FILE --json")
	case o.MaxTokens < 0:
		return usagef("chat: --max-tokens %d; at least 1 is needed, or 0 for no limit", o.MaxTokens)
	}
	facts, err := c.facts()
	if err != nil {
		return err
	}
	if o.Sampling, err = c.sampling("chat", choose); err != nil {
		return err
	}
	if o.Tokenizer, err = library.ReadTokenizer(c.dir); err != nil {
		return err
	}
	if o.Format, err = c.format(); err != nil {
		return err
	}
	if o.Stops, err = host.StopIDs(c.dir); err != nil {
		return err
	}
	d, err := dialogue.New(o)
	if err != nil {
		return err
	}
	return c.withSession(ctx, func(s *host.Session) error {
		conversation, interrupts, stop := dialogue.Signals(ctx)
		defer stop()
		d.Interrupts = interrupts
		return d.Run(conversation, front.Watched{Session: s, Line: c.newProgress()}, facts.Model.Vocab,
			facts.Model.MaxSeq)
	})
}

// format reads the chat templates of the build.
func (c *command) format() (*chat.Format, error) {
	format, err := chat.Load(c.dir)
	if errors.Is(err, chat.ErrNone) {
		return nil, &host.BuildError{Path: c.dir, What: "the model came without a chat template",
			Remedy: "give the whole prompt with run --prompt"}
	}
	return format, err
}
