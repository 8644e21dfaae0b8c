package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"amkc/app/engine"
	"amkc/app/front"
	"amkc/app/library"
	"amkc/app/prompts"
	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
	"amkc/text/chat"
	"amkc/text/draft"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// defaultTokens is how many tokens run generates when it is not told, less where positions end sooner.
const defaultTokens = 256

// oldIDs is --ids in the previous release.
const oldIDs = "prompt-ids"

// runResult is what run prints as JSON.
type runResult struct {
	Version   int     `json:"version"`
	PromptIDs []int   `json:"prompt_ids"`
	IDs       []int   `json:"ids"`
	Text      *string `json:"text"`    // of the ids alone; null without a tokenizer
	Stopped   string  `json:"stopped"` // "eos", "stop" (before a string of --stop) or "length"
	*sampling.Report
	Drafts *draft.Stats `json:"drafts,omitempty"`
}

func (c *command) runPrompt(ctx context.Context, args []string) error {
	set := c.flags("run")
	var f front.Run
	front.DefineRun(set, &f, defaultTokens)
	list := set.String("ids", "", "token `IDS` to continue, 1,2,3; works without a tokenizer too")
	set.StringVar(list, oldIDs, "", "") // of the previous release
	guess := set.String("draft", "", "draft tokens by `ngram` from prompt and output, and verify several tokens "+
		"per pass; the text is the same")
	load := set.String("prefix", "", "take what the prompt has in common with the prefix in `FILE` from there")
	save := set.String("save-prefix", "", "save the prompt, with what decoding it leaves in the cache, into `FILE`")
	if err := c.parse(set, args); err != nil {
		return err
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given[oldIDs] {
		given["ids"] = true
		fmt.Fprintf(c.stderr, "%s: --%s is --ids now; the old name is gone in the next release\n",
			c.launcher.Model.Name, oldIDs)
	}
	sources := 0
	for _, name := range []string{"prompt", "ids", "messages", "prompts"} {
		if given[name] {
			sources++
		}
	}
	switch {
	case sources != 1:
		return usagef("run: give one of --prompt TEXT, --messages FILE, --ids 1,2,3 and --prompts FILE")
	case given["prompts"] && (given["prefix"] || given["save-prefix"]):
		return usagef("run: --prefix and --save-prefix are for one prompt, and --prompts has several")
	}
	facts, err := c.facts()
	if err != nil {
		return err
	}
	o, err := c.sampling("run", &f.Sampling)
	if err != nil {
		return err
	}
	var drafter draft.Drafter
	if given["draft"] {
		if drafter, err = c.drafter("run", *guess, facts, given["prompts"]); err != nil {
			return err
		}
	}
	tok, tokErr := library.ReadTokenizer(c.dir)
	var prompt []int
	var jobs []prompts.Job
	switch {
	case given["prompts"]:
		jobs, err = c.readPrompts(f.Prompts, tok, tokErr, f.MaxTokens, facts)
	case given["prompt"]:
		prompt, err = c.encode(tok, tokErr, f.Prompt)
	case given["messages"]:
		prompt, err = c.encodeMessages(tok, tokErr, f.Messages)
	default:
		prompt, err = parseIDs(*list)
	}
	if err != nil {
		return err
	}
	if len(f.Stops) > 0 && tok == nil {
		return fmt.Errorf("run: --stop needs a tokenizer: %w", tokErr)
	}
	var ends []int
	if !f.IgnoreEOS {
		if ends, err = host.StopIDs(c.dir); err != nil {
			return err
		}
	}
	if given["prompts"] {
		return c.withSession(ctx, func(s *host.Session) error {
			return c.completePrompts(ctx, s, f.Prompts, jobs, drafter,
				prompts.Options{Tokenizer: tok, Sampling: o, Ends: ends, Stops: f.Stops})
		})
	}
	if !given["max-tokens"] {
		f.MaxTokens = max(1, min(f.MaxTokens, facts.Model.MaxSeq-len(prompt)+1))
	}
	if given["save-prefix"] {
		if err := c.mayWrite("--save-prefix", *save, "prompt.prefix"); err != nil {
			return err
		}
	}
	return c.withSession(ctx, func(s *host.Session) error {
		if given["prefix"] {
			if err := c.loadPrefix(ctx, s, *load, prompt); err != nil {
				return err
			}
		}
		err := c.complete(ctx, s, newWriter(tok, prompt, f.Stops, c.stdout), front.Request{Prompt: prompt,
			Most: f.MaxTokens, Stops: ends, Sampling: o, Drafter: drafter, Vocab: facts.Model.Vocab})
		if err == nil && given["save-prefix"] {
			err = outfile.Write(*save, func(w io.Writer) error { return s.SavePrefix(w, prompt) })
		}
		return err
	})
}

// loadPrefix puts a prefix into the cache, and goes back to where a prompt differs from it. The last token of the
// prompt is decoded anyhow, for the logits after it.
func (c *command) loadPrefix(ctx context.Context, s *host.Session, path string, prompt []int) error {
	ids, err := s.LoadPrefix(ctx, path)
	if err != nil {
		return err
	}
	known := 0
	for known < min(len(ids), len(prompt)-1) && ids[known] == prompt[known] {
		known++
	}
	if known < len(ids) && !c.json {
		fmt.Fprintf(c.stderr, "%s: of the %d tokens of the prefix the prompt begins with %d\n", c.launcher.Model.Name,
			len(ids), known)
	}
	return s.Rewind(known)
}

// complete decodes and prints, token by token unless the result is to be JSON.
func (c *command) complete(ctx context.Context, s *host.Session, w *writer, q front.Request) error {
	if c.json {
		w.out = io.Discard
	}
	model := s.Facts().Model
	if steps := len(q.Prompt) + q.Most - 1; steps > model.MaxSeq { // the last token takes no position: not decoded
		return &host.PositionError{Steps: steps, MaxSeq: model.MaxSeq}
	}
	done, err := front.Complete(ctx, front.Watched{Session: s, Line: c.newProgress()}, q, w.token)
	if !done.Found {
		found, restErr := w.rest()
		done.Found, err = found, cmp.Or(err, restErr)
	}
	if err = cmp.Or(err, w.put("\n")); err != nil || !c.json {
		return err
	}
	r := runResult{Version: 1, PromptIDs: q.Prompt, IDs: done.IDs, Stopped: done.Reason(),
		Report: q.Sampling.Report(done.Choices)}
	if done.Drafts.Passes > 0 {
		r.Drafts = &done.Drafts
	}
	if w.text != nil {
		r.Text = &w.text.Written
	}
	return c.print(r, "")
}

// encode turns the prompt into ids.
func (c *command) encode(tok *tokenizer.Tokenizer, tokErr error, text string) ([]int, error) {
	if tokErr != nil {
		return nil, fmt.Errorf("%w; --ids works without a tokenizer", tokErr)
	}
	if text == "-" {
		all, err := infile.ReadStream(c.stdin, "stdin", infile.Prompt)
		if err != nil {
			return nil, fmt.Errorf("reading the prompt: %w", err)
		}
		text = string(all)
	}
	ids, begun, err := tok.EncodePrompt(text)
	if begun != "" && !c.json {
		fmt.Fprintf(c.stderr, "%s: the prompt begins with %s, so no other is put in front\n", c.launcher.Model.Name,
			printable.Clip(begun))
	}
	return checked(ids, err)
}

// checked are the ids of a prompt, if it has any.
func checked(ids []int, err error) ([]int, error) {
	if err != nil {
		return nil, &failure{fmt.Sprintf("the prompt cannot be encoded: %v", err)}
	}
	if len(ids) == 0 {
		return nil, &failure{"the prompt has no tokens, and this tokenizer adds none; give some text"}
	}
	return ids, nil
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

// encodeMessages turns a file of messages into ids by the model's chat template, which writes every special token that
// the prompt has.
func (c *command) encodeMessages(tok *tokenizer.Tokenizer, tokErr error, path string) ([]int, error) {
	if tokErr != nil {
		return nil, fmt.Errorf("%w; --ids works without a tokenizer", tokErr)
	}
	format, err := c.format()
	if err != nil {
		return nil, err
	}
	data, err := c.readPrompt(path)
	if path == "-" {
		path = "stdin"
	}
	if err != nil {
		return nil, &failure{fmt.Sprintf("%s: the messages cannot be read: %s", path, infile.Reason(err))}
	}
	conversation, err := chat.Parse(data)
	if err == nil {
		err = conversation.OnlyText()
	}
	if err != nil {
		return nil, &failure{fmt.Sprintf("%s: %v", path, err)}
	}
	text, err := format.Render(conversation, chat.Options{Now: time.Now()})
	if err != nil {
		return nil, &failure{fmt.Sprintf("the chat template does not format %s: %v", path, err)}
	}
	return checked(tok.Encode(text, false))
}

// readPrompt reads a file that a flag names, or stdin.
func (c *command) readPrompt(path string) ([]byte, error) {
	if path == "-" {
		return infile.ReadStream(c.stdin, "stdin", infile.Prompt)
	}
	return infile.Read(path, infile.Prompt)
}

// A writer prints tokens as they come: text in whole characters, or ids when there is no tokenizer. The prompt comes
// first, because what a token looks like may depend on the one before; and with the first of them, because until then a
// line on the same terminal may say how much of it has been read.
//
// What the model writes goes into a file or a pipe byte for byte. On a terminal, control characters other than line
// breaks and tabs are shown and not obeyed, as the prompt and the weights may be somebody else's.
type writer struct {
	out   io.Writer
	shown bool          // out is a terminal
	text  *prompts.Text // nil: ids
	begin string        // the prompt, until it is printed
	any   bool          // something was printed
}

func newWriter(tok *tokenizer.Tokenizer, prompt []int, stops []string, out io.Writer) *writer {
	w := &writer{out: out, shown: progress.IsTerminal(out)}
	if tok != nil {
		w.text = prompts.NewText(tok, prompt, stops)
		w.begin = w.text.Prompt
	}
	return w
}

// token prints what an id completes, which may be nothing.
func (w *writer) token(id int) error {
	if w.text != nil {
		s, found := w.text.Push(id)
		err := w.put(s)
		if found && err == nil {
			err = front.ErrStop
		}
		return err
	}
	if w.any {
		return w.put(fmt.Sprintf(" %d", id))
	}
	return w.put(fmt.Sprint(id))
}

// rest prints what was held back, and reports whether that completes a stop string.
func (w *writer) rest() (found bool, err error) {
	s := ""
	if w.text != nil {
		s, found = w.text.End()
	}
	return found, w.put(s)
}

func (w *writer) put(s string) error {
	s, w.begin = w.begin+s, ""
	if s == "" {
		return nil
	}
	w.any = true
	if w.shown {
		s = printable.Text(s)
	}
	_, err := io.WriteString(w.out, s)
	return err
}

// readPrompts reads the file that --prompts names, and encodes what it asks for.
func (c *command) readPrompts(path string, tok *tokenizer.Tokenizer, missing error, most int,
	facts *host.Facts) ([]prompts.Job, error) {
	data, err := c.readPrompt(path)
	if err != nil {
		return nil, &failure{fmt.Sprintf("%s: the prompts cannot be read: %s", path, infile.Reason(err))}
	}
	all, err := prompts.Parse(data)
	var jobs []prompts.Job
	if err == nil {
		jobs, err = prompts.Jobs(all, tok, missing, most,
			serve.Limits{Vocab: facts.Model.Vocab, MaxSeq: facts.Model.MaxSeq})
	}
	return jobs, badLine(path, err)
}

// badLine says which file a line at fault is of.
func badLine(path string, err error) error {
	if line := new(prompts.LineError); errors.As(err, &line) {
		return &failure{fmt.Sprintf("%s: %v", path, err)}
	}
	return err
}

// completePrompts prints a line of JSON for each prompt, in their order.
func (c *command) completePrompts(ctx context.Context, s *host.Session, path string, jobs []prompts.Job,
	d draft.Drafter, o prompts.Options) error {
	e := engine.New(s, front.Batch(jobs, s.Sequences(), d))
	err := prompts.Complete(ctx, e, jobs, o, func(r prompts.Result) error {
		var line strings.Builder
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
		_, err := io.WriteString(c.stdout, printable.Text(line.String()))
		return err
	})
	return badLine(path, err)
}
