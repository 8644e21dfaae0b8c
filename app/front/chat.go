package front

import (
	"fmt"
	"io"
	"math"
	"time"

	"amkc/app/dialogue"
	"amkc/app/editor"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
	"amkc/text/chat"
	"amkc/text/jinja"
	"amkc/text/sampling"
)

// Chat are the flags of chat.
type Chat struct {
	System    string
	MaxTokens int
	Stats     bool
	Sampling  sampling.Flags

	think, noThink bool
	variables      variables
}

// DefineChat adds them. A conversation draws as the model says, and prints no log-probabilities.
func DefineChat[V any](set Set[V], c *Chat) {
	add(set, NewWord(&c.System, ""), "system", "begin with the system message `TEXT`")
	add(set, NewCount(&c.MaxTokens, 0, 1, math.MaxInt32), "max-tokens",
		fmt.Sprintf("answer with at most `N` tokens; default: as many as there is room for, and %d where "+
			"the model has no chat template", dialogue.Continued))
	set.BoolVar(&c.Stats, "stats", false, "say after each answer how many tokens a second it had")
	set.BoolVar(&c.think, "think", false, "let the model think before it answers; for templates with a switch")
	set.BoolVar(&c.noThink, "no-think", false, "let it answer at once")
	add(set, &c.variables, "chat-template-kwargs", "set variables of the chat template, a `JSON` object")
	set.BoolVar(&c.Sampling.Greedy, "greedy", false, sampling.GreedyDoc)
	c.Sampling.Follow = true
	for _, v := range c.Sampling.Values() {
		if v.Name != "logprobs" {
			add(set, v, v.Name, v.Doc)
		}
	}
}

// NoSample answers --sample, which chat had in the previous release.
const NoSample = "chat draws tokens without --sample now; leave it out, or use --greedy for the most probable token"

// Fault says which flags exclude each other, empty if none do.
func (c *Chat) Fault() string {
	if c.think && c.noThink {
		return "--think and --no-think exclude each other; want one of them"
	}
	return ""
}

// Dialogue begins the configuration of a conversation over the streams of a command: tokenizer, template, stops and
// sampling are the caller's.
func (c *Chat) Dialogue(in io.Reader, out, err io.Writer, quiet bool) dialogue.Config {
	o := dialogue.Config{System: c.System, MaxTokens: c.MaxTokens, Stats: c.Stats, Variables: c.variables.dict,
		Quiet: quiet, Now: time.Now(), In: in, Out: out, Err: err,
		Interactive: dialogue.IsTerminal(in) && progress.IsTerminal(out)}
	if c.think || c.noThink {
		o.Think = &c.think
	}
	if e := editor.New(in, out); e != nil {
		o.Editor = e
	}
	if fault := c.Sampling.Fault; fault != nil && !quiet {
		fmt.Fprintf(err, "%s; tokens are drawn without it, by default at temperature 1\n",
			printable.Clip(fault.Error()))
	}
	return o
}

// variables are the value of a flag that takes variables of a template.
type variables struct{ dict *jinja.Dict }

func (v *variables) String() string { return "" }
func (v *variables) Type() string   { return "string" }

func (v *variables) Set(s string) error {
	d, err := chat.ParseVariables([]byte(s))
	if err != nil {
		return fmt.Errorf(`want an object in JSON, as {"enable_thinking": false}: %w`, err)
	}
	v.dict = d
	return nil
}
