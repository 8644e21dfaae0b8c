package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"amkc/app/dialogue"
	"amkc/app/front"
	"amkc/compiler"
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/text/sampling"
)

// chatFlags are the flags of chat.
type chatFlags struct {
	model modelFlags
	place place
	chat  front.Chat
}

func chatVerb() verb {
	f := &chatFlags{}
	return verb{
		name: "chat", synopsis: "MODEL|DIR [--system TEXT] [--think|--no-think] [--greedy] [--device ref|cuda]", min: 1,
		max:     1,
		summary: "talk with a model",
		details: `
In a terminal, messages are edited as in a shell, and pasted text is one message. In a pipe, each line of standard
input is a message. /help lists the commands, Ctrl-C stops an answer, and Ctrl-D ends the conversation. Tokens are
drawn as generation_config.json of the model says. When the context is full, the oldest turns are dropped, and stderr
says so. A model without a chat template continues what is typed. On a GPU, a model is first built into a cache, and
found there the next time.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *chatFlags) define(set *pflag.FlagSet) {
	front.DefineChat(set, &f.chat)
	f.place.define(set)
	f.model.define(set, defaultTarget)
}

func (f *chatFlags) run(c *call) error {
	switch fault := f.chat.Fault(); {
	case c.json:
		return c.usage("--json is for single answers; want amkc run MODEL --messages FILE --json")
	case fault != "":
		return c.usage("%s", fault)
	}
	dir, _, err := checkpoint.Locate(c.args[0])
	if err != nil {
		return err
	}
	if err := f.model.checkDirectory(dir); err != nil {
		return err
	}
	if err := f.model.forModels(c, dir); err != nil {
		return err
	}
	choice, err := choose(c, &f.chat.Sampling, dir)
	if err != nil {
		return err
	}
	o := f.chat.Dialogue(c.stdin, c.stdout, c.stderr, c.quiet)
	o.Sampling = choice
	if o.Tokenizer, err = compiler.LoadTokenizer(dir); err != nil {
		return err
	}
	if o.Format, err = compiler.ConversationFormat(dir); err != nil {
		return err
	}
	if o.Stops, err = compiler.StopIDs(dir); err != nil {
		return err
	}
	d, err := dialogue.New(o)
	if err != nil {
		return chatError(dir, err)
	}
	ctx, cancel := interruptible()
	defer cancel()
	e, err := open(ctx, c, f.place, dir, &f.model)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := checkChoice(c, &o.Sampling, e); err != nil {
		return err
	}
	conversation, interrupts, stop := dialogue.Signals(ctx)
	defer stop()
	d.Interrupts = interrupts
	c.raw = true
	return chatError("chat", d.Run(conversation, e, e.vocab, e.maxSeq))
}

// chatError gives what is wrong with a template, a message or an answer its code.
func chatError(pos string, err error) error {
	var refused *dialogue.Error
	var logits *sampling.LogitsError
	switch {
	case errors.As(err, &refused):
		return diag.Errorf(codePrompt, pos, "%s", refused.What)
	case errors.As(err, &logits):
		return diag.Errorf(codeNoToken, "logits", "%v", logits)
	}
	return err
}
