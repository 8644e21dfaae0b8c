package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/pflag"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/passes/checkpoint"
	"amkc/runtime/infile"
	"amkc/runtime/tokenizer"
)

// defaultMaxTokens is how many tokens run decodes when nobody says.
const defaultMaxTokens = 64

// runFlags are the flags of run.
type runFlags struct {
	model     modelFlags
	place     place
	prompt    string
	ids       []int
	maxTokens int
	ignoreEOS bool
}

func runVerb() verb {
	r := &runFlags{}
	return verb{
		name: "run", synopsis: "MODEL|DIR --prompt TEXT|--prompt-ids 1,2,3 [--max-tokens N] [--device ref|cuda]",
		min: 1, max: 1,
		summary: "decode greedily after a prompt",
		details: "A prompt in text is answered with text, a prompt in token ids with ids; --json prints both. " +
			"Decoding ends after\n" +
			"--max-tokens tokens, or with a token that the model's configuration names as the end of a text.\n" +
			"On a GPU a model is built first, into a cache, and the next time found there.",
		flags: r.define,
		run:   r.run,
	}
}

func (r *runFlags) define(f *pflag.FlagSet) {
	f.StringVar(&r.prompt, "prompt", "", "decode after `TEXT`; - reads it from standard input")
	f.Var(newIDs(&r.ids), "prompt-ids", "decode after these token `IDS`, 1,2,3; needs no tokenizer")
	f.Var(newCount(&r.maxTokens, defaultMaxTokens, 1, math.MaxInt32), "max-tokens", "decode at most `N` tokens")
	f.BoolVar(&r.ignoreEOS, "ignore-eos", false, "go on after a token that ends the text")
	r.place.define(f)
	r.model.define(f, defaultTarget)
}

// completion is the result of run in JSON.
type completion struct {
	Device    string  `json:"device"`
	Build     string  `json:"build,omitempty"` // in the cache
	PromptIDs []int   `json:"prompt_ids"`
	IDs       []int   `json:"ids"`            // the last one may be the token that ended the text
	Text      *string `json:"text,omitempty"` // without special tokens; absent without a tokenizer
	Stopped   string  `json:"stopped"`        // eos or length
}

func (r *runFlags) run(c *call) error {
	asText, asIDs := c.flags.Changed("prompt"), c.flags.Changed("prompt-ids")
	if asText == asIDs {
		return c.usage("want one of --prompt and --prompt-ids")
	}
	dir, _, err := checkpoint.Locate(c.args[0])
	if err != nil {
		return err
	}
	if err := checkDirectory(dir); err != nil {
		return err
	}
	if err := r.model.forModels(c, dir); err != nil {
		return err
	}
	tok, err := compiler.LoadTokenizer(dir)
	if err != nil && asText {
		return fmt.Errorf("--prompt-ids works without a tokenizer: %w", err)
	}
	flag := "--prompt-ids"
	if asText {
		flag = "--prompt"
		if r.ids, err = r.encode(c, tok); err != nil {
			return err
		}
	}
	var stops []int
	if !r.ignoreEOS {
		if stops, err = compiler.StopIDs(dir); err != nil {
			return err
		}
	}
	ctx, cancel := interruptible()
	defer cancel()
	o, err := open(ctx, c, r.place, dir, &r.model)
	if err != nil {
		return err
	}
	defer o.Close()
	n := r.maxTokens
	if !c.flags.Changed("max-tokens") {
		n = max(1, min(n, o.maxSeq-len(r.ids)+1))
	}
	if err := checkIDs(flag, r.ids, n, o.vocab, o.maxSeq); err != nil {
		return err
	}
	return r.decode(ctx, c, o, tok, n, stops, asText)
}

// encode turns the prompt into ids.
func (r *runFlags) encode(c *call, tok *tokenizer.Tokenizer) ([]int, error) {
	text := r.prompt
	if text == "-" {
		all, err := infile.ReadStream(c.stdin, "standard input", infile.Prompt)
		if err != nil {
			return nil, diag.Errorf(codeInput, "--prompt", "cannot read standard input: %v", infile.Reason(err))
		}
		text = string(all)
	}
	ids, err := tok.Encode(text, true)
	if err != nil {
		return nil, diag.Errorf(codePrompt, "--prompt", "%s", strings.TrimPrefix(err.Error(), "tokenizer: "))
	}
	return ids, nil
}

// decode streams the completion, as text where the prompt was text.
func (r *runFlags) decode(ctx context.Context, c *call, o *opened, tok *tokenizer.Tokenizer, n int, stops []int,
	asText bool) error {
	out := newStream(c, tok, r.ids, asText)
	done, err := o.Complete(ctx, r.ids, n, stops, out.emit)
	if err := errors.Join(err, out.end()); err != nil {
		return err
	}
	result := completion{Device: o.device, Build: o.build, PromptIDs: r.ids, IDs: done.IDs, Stopped: "length"}
	if done.Stopped {
		result.Stopped = "eos"
	}
	if tok != nil {
		result.Text = &out.text
	}
	c.payload = result
	return nil
}
