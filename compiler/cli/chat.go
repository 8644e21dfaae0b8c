package cli

import (
	"errors"
	"math"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/dialogue"
	"amkc/app/front"
	"amkc/compiler"
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/runtime/progress"
	"amkc/text/sampling"
)

// chatFlags are the flags of chat.
type chatFlags struct {
	model    modelFlags
	place    place
	dialogue dialogue.Config
	sampling sampling.Flags
}

func chatVerb() verb {
	f := &chatFlags{}
	return verb{
		name: "chat", synopsis: "MODEL|DIR [--system TEXT] [--sample] [--temperature T] [--device ref|cuda]", min: 1,
		max:     1,
		summary: "talk with a chat model, line by line",
		details: "Each line of standard input is a message, and the answer is printed as it comes. /clear begins " +
			"anew, /stats says\n" +
			"how fast the last answer was. Ctrl-C stops an answer, and twice at the prompt the conversation; Ctrl-D " +
			"ends it too.\n" +
			"Of a turn only what is new is decoded. On a GPU a model is built first, into a cache, and the next time " +
			"found there.",
		flags: f.define,
		run:   f.run,
	}
}

func (f *chatFlags) define(set *pflag.FlagSet) {
	set.Var(front.NewWord(&f.dialogue.System, ""), "system", "begin with the system message `TEXT`")
	set.Var(front.NewCount(&f.dialogue.MaxTokens, 0, 1, math.MaxInt32), "max-tokens",
		"answer with at most `N` tokens; default: as many as there are positions for")
	set.BoolVar(&f.dialogue.Stats, "stats", false, "say after each answer how many tokens a second it had")
	front.DefineSampling(set, &f.sampling, false)
	f.place.define(set)
	f.model.define(set, defaultTarget)
}

func (f *chatFlags) run(c *call) error {
	if c.json {
		return c.usage("--json is for single answers; want amkc run MODEL --messages FILE --json")
	}
	dir, _, err := checkpoint.Locate(c.args[0])
	if err != nil {
		return err
	}
	if err := checkDirectory(dir); err != nil {
		return err
	}
	if err := f.model.forModels(c, dir); err != nil {
		return err
	}
	o := &f.dialogue
	o.Now, o.In, o.Out, o.Err, o.Quiet = time.Now(), c.stdin, c.stdout, c.stderr, c.quiet
	o.Interactive = dialogue.IsTerminal(c.stdin) && progress.IsTerminal(c.stdout)
	if o.Sampling, err = choose(c, &f.sampling, dir); err != nil {
		return err
	}
	if o.Tokenizer, err = compiler.LoadTokenizer(dir); err != nil {
		return err
	}
	if o.Format, err = compiler.ChatFormat(dir); err != nil {
		return err
	}
	if o.Stops, err = compiler.StopIDs(dir); err != nil {
		return err
	}
	d, err := dialogue.New(*o)
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
