package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/app/prompts"
	"amkc/compiler"
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/shape"
	"amkc/text/draft"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// defaultMaxTokens is how many tokens run decodes when nobody says.
const defaultMaxTokens = 64

// runFlags are the flags of run.
type runFlags struct {
	model modelFlags
	place place
	front.Run
	ids   []int
	draft string
}

func runVerb() verb {
	r := &runFlags{}
	return verb{
		name: "run", synopsis: "MODEL|DIR --prompt TEXT [--max-tokens N] [--device ref|cuda] [flags]",
		min: 1, max: 1,
		summary: "continue a prompt",
		details: `
Instead of --prompt: --messages FILE, --ids IDS or --prompts FILE. The answer to a text is text, and to ids it is ids;
--json prints both. It ends after --max-tokens tokens, or with a token that ends a text of the model. Without --sample
or --temperature, each token is the most probable one. On a GPU, a model is first built into a cache, and found there
the next time.`,
		flags: r.define,
		run:   r.run,
	}
}

func (r *runFlags) define(f *pflag.FlagSet) {
	front.DefineRun(f, &r.Run, defaultMaxTokens)
	f.Var(newIDs(&r.ids), "ids", "continue these token `IDS`, 1,2,3; needs no tokenizer")
	f.Var(newChoice(&r.draft, "", draft.NGram), "draft",
		"draft tokens from n-grams of prompt and output, and verify several tokens per pass, on a GPU; the text stays "+
			"the same")
	r.place.define(f)
	r.place.defineSequences(f)
	r.model.define(f, defaultTarget)
}

// completion is the result of run in JSON.
type completion struct {
	Device    string  `json:"device"`
	Build     string  `json:"build,omitempty"` // in the cache
	PromptIDs []int   `json:"prompt_ids"`
	IDs       []int   `json:"ids"`            // up to the token that ended the text, or completed a stop string
	Text      *string `json:"text,omitempty"` // without special tokens; absent without a tokenizer
	Stopped   string  `json:"stopped"`        // eos, stop (before a string of --stop) or length
	*sampling.Report
	Drafts *draft.Stats `json:"drafts,omitempty"`
}

func (r *runFlags) run(c *call) error {
	flag := ""
	const wanted = "want one of --prompt, --messages, --ids and --prompts"
	for _, name := range []string{"prompt", "messages", "ids", "prompts"} {
		if !c.flags.Changed(name) {
			continue
		}
		if flag != "" {
			return c.usage(wanted)
		}
		flag = "--" + name
	}
	if flag == "" {
		return c.usage(wanted)
	}
	for _, several := range []string{"sequences", "sequence-rows"} {
		if c.flags.Changed(several) && flag != "--prompts" {
			return c.usage("--%s is for --prompts, and %s has one", several, flag)
		}
	}
	asText := flag != "--ids"
	dir, _, err := checkpoint.Locate(c.args[0])
	if err != nil {
		return err
	}
	if err := r.model.checkDirectory(dir); err != nil {
		return err
	}
	if err := r.model.forModels(c, dir); err != nil {
		return err
	}
	choose, err := choose(c, &r.Sampling, dir)
	if err != nil {
		return err
	}
	var ends []int
	if !r.IgnoreEOS {
		if ends, err = compiler.StopIDs(dir); err != nil {
			return err
		}
	}
	ctx, cancel := interruptible()
	defer cancel()
	if flag == "--prompts" {
		return r.runPrompts(ctx, c, dir, choose, ends)
	}
	tok, err := compiler.LoadTokenizer(dir)
	if err != nil && asText {
		return fmt.Errorf("--ids works without a tokenizer: %w", err)
	}
	if err != nil && len(r.Stops) > 0 {
		return needsTokenizer(err)
	}
	switch flag {
	case "--prompt":
		r.ids, err = r.encode(c, tok)
	case "--messages":
		r.ids, err = r.encodeMessages(c, tok, dir)
	default:
		err = nil // of the tokenizer, which ids do not need
	}
	if err != nil {
		return err
	}
	if r.draft != "" && !isBuild(dir) && !c.flags.Changed("rows") {
		r.place.rows = shape.MaxTokens
	}
	o, err := open(ctx, c, r.place, dir, &r.model)
	if err != nil {
		return err
	}
	defer o.Close()
	drafter, err := o.drafts(r.draft, dir, false)
	if err != nil {
		return err
	}
	n := r.MaxTokens
	if !c.flags.Changed("max-tokens") {
		n = max(1, min(n, o.maxSeq-len(r.ids)+1))
	}
	if err := checkIDs(flag, r.ids, n, o.vocab, o.maxSeq); err != nil {
		return err
	}
	if err := checkChoice(c, &choose, o); err != nil {
		return err
	}
	return r.decode(ctx, c, o, newStream(c, tok, r.ids, r.Stops, asText), front.Request{Prompt: r.ids, Most: n,
		Stops: ends, Sampling: choose, Drafter: drafter, Vocab: o.vocab})
}

// needsTokenizer is why stop strings cannot be looked for.
func needsTokenizer(err error) error { return fmt.Errorf("--stop needs a tokenizer: %w", err) }

// encode turns the prompt into ids.
func (r *runFlags) encode(c *call, tok *tokenizer.Tokenizer) ([]int, error) {
	text := r.Prompt
	if text == "-" {
		all, err := r.input(c, "--prompt", "-")
		if err != nil {
			return nil, err
		}
		text = string(all)
	}
	ids, begun, err := tok.EncodePrompt(text)
	if begun != "" {
		c.note("the prompt begins with %s, so no other is put in front", begun)
	}
	return ids, badPrompt("--prompt", err)
}

// encodeMessages turns messages into ids by the model's chat template, which writes the special tokens itself.
func (r *runFlags) encodeMessages(c *call, tok *tokenizer.Tokenizer, dir string) ([]int, error) {
	all, err := r.input(c, "--messages", r.Messages)
	if err != nil {
		return nil, err
	}
	text, err := compiler.Messages(dir, r.Messages, all, time.Now())
	if err != nil {
		return nil, err
	}
	ids, err := tok.Encode(text, false)
	return ids, badPrompt("--messages", err)
}

// input reads the file that a flag names, or standard input.
func (r *runFlags) input(c *call, flag, path string) ([]byte, error) {
	if path == "-" {
		all, err := infile.ReadStream(c.stdin, "standard input", infile.Prompt)
		if err != nil {
			return nil, diag.Errorf(codeInput, flag, "cannot read standard input: %v", infile.Reason(err))
		}
		return all, nil
	}
	all, err := infile.Read(path, infile.Prompt)
	if err != nil {
		return nil, diag.Errorf(codeInput, path, "cannot be read: %v", infile.Reason(err))
	}
	return all, nil
}

// badPrompt is the diagnostic of a text that cannot be encoded.
func badPrompt(flag string, err error) error {
	if err == nil {
		return nil
	}
	return diag.Errorf(codePrompt, flag, "%s", strings.TrimPrefix(err.Error(), "tokenizer: "))
}

// decode streams the completion.
func (r *runFlags) decode(ctx context.Context, c *call, o *opened, out *stream, q front.Request) error {
	done, err := front.Complete(ctx, o.engine, q, out.emit)
	if err := errors.Join(noToken(err), out.end(&done)); err != nil {
		return err
	}
	result := completion{Device: o.device, Build: o.build, PromptIDs: q.Prompt, IDs: done.IDs, Stopped: done.Reason(),
		Report: q.Sampling.Report(done.Choices)}
	if q.Drafter != nil {
		result.Drafts = &done.Drafts
	}
	if out.text != nil {
		result.Text = &out.text.Written
	}
	c.payload = result
	return nil
}

// A stream prints tokens as they come: whole characters of text, or ids with commas between them.
type stream struct {
	c      *call
	text   *prompts.Text // of the completion; nil without a tokenizer
	asText bool
	ids    int // printed
}

func newStream(c *call, tok *tokenizer.Tokenizer, prompt []int, stops []string, asText bool) *stream {
	s := &stream{c: c, asText: asText}
	if tok != nil {
		s.text = prompts.NewText(tok, prompt, stops)
	}
	return s
}

func (s *stream) emit(id int) error {
	found := false
	if s.text != nil {
		var text string
		text, found = s.text.Push(id)
		if err := s.write(text); err != nil {
			return err
		}
	}
	if !s.asText {
		separator := ","
		if s.ids == 0 {
			separator = ""
		}
		s.ids++
		if err := s.c.printf("%s%s", separator, strconv.Itoa(id)); err != nil {
			return err
		}
	}
	if found {
		return front.ErrStop
	}
	return nil
}

// end prints what was held back, which may complete a stop string, and ends the last line.
func (s *stream) end(done *front.Completion) error {
	if s.text != nil && !done.Found {
		var rest string
		rest, done.Found = s.text.End()
		if err := s.write(rest); err != nil {
			return err
		}
	}
	if s.asText && strings.HasSuffix(s.text.Written, "\n") {
		return nil
	}
	return s.c.printf("\n")
}

func (s *stream) write(text string) error {
	if text == "" || !s.asText || s.c.json {
		return nil
	}
	return s.c.print(text)
}
