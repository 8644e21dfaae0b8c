package cli

import (
	"context"
	"errors"

	"amkc/app/dialogue"
	"amkc/app/front"
	"amkc/app/library"
	"amkc/runtime/host"
	"amkc/text/chat"
)

// chat holds a conversation.
func (c *command) chat(ctx context.Context, args []string) error {
	set := c.flags("chat")
	f := &front.Chat{}
	front.DefineChat(set, f)
	if err := c.parse(set, args); err != nil {
		return err
	}
	switch fault := f.Fault(); {
	case c.json:
		return usagef("chat: --json is for single answers; want run --messages FILE --json")
	case fault != "":
		return usagef("chat: %s", fault)
	}
	facts, err := c.facts()
	if err != nil {
		return err
	}
	choice, err := c.sampling("chat", &f.Sampling)
	if err != nil {
		return err
	}
	o := f.Dialogue(c.stdin, c.stdout, c.stderr, false)
	o.Sampling = choice
	if o.Tokenizer, err = library.ReadTokenizer(c.dir); err != nil {
		return err
	}
	if o.Format, err = chat.Load(c.dir); err != nil && !errors.Is(err, chat.ErrNone) {
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
