package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/tokenizer"
)

// defaultTokens is how many tokens run generates when it is not told, less where positions end sooner.
const defaultTokens = 256

// runResult is what run prints as JSON.
type runResult struct {
	Version   int     `json:"version"`
	PromptIDs []int   `json:"prompt_ids"`
	IDs       []int   `json:"ids"`
	Text      *string `json:"text"`    // of the ids alone; null without a tokenizer
	Stopped   string  `json:"stopped"` // "eos" or "length"
}

func (c *command) runPrompt(ctx context.Context, args []string) error {
	set := c.flags("run")
	text := set.String("prompt", "", "`TEXT` to continue; - reads it from stdin")
	ids := set.String("prompt-ids", "", "token `IDS` to continue, 1,2,3; works without a tokenizer too")
	tokens := set.Int("max-tokens", 0, fmt.Sprintf("generate up to `N` tokens; by default %d, or as many as there "+
		"are positions for", defaultTokens))
	ignoreEOS := set.Bool("ignore-eos", false, "go on after an end-of-sequence token")
	if err := c.parse(set, args); err != nil {
		return err
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case given["prompt"] == given["prompt-ids"]:
		return usagef("run: give --prompt TEXT or --prompt-ids 1,2,3")
	case given["max-tokens"] && *tokens < 1:
		return usagef("run: --max-tokens %d; at least 1 is needed", *tokens)
	}
	facts, err := c.facts()
	if err != nil {
		return err
	}
	tok, tokErr := loadTokenizer(c.dir)
	var prompt []int
	if given["prompt"] {
		prompt, err = c.encode(tok, tokErr, *text)
	} else {
		prompt, err = parseIDs(*ids)
	}
	if err != nil {
		return err
	}
	var stops []int
	if !*ignoreEOS {
		if stops, err = host.StopIDs(c.dir); err != nil {
			return err
		}
	}
	if *tokens == 0 {
		*tokens = max(1, min(defaultTokens, facts.Model.MaxSeq-len(prompt)+1))
	}
	return c.withSession(ctx, func(s *host.Session) error { return c.complete(ctx, s, tok, prompt, *tokens, stops) })
}

// complete decodes and prints, token by token unless the result is to be JSON.
func (c *command) complete(ctx context.Context, s *host.Session, tok *tokenizer.Tokenizer, prompt []int, n int,
	stops []int) error {
	w := newWriter(tok, c.stdout)
	if c.json {
		w.out = io.Discard
	}
	if err := w.prompt(prompt); err != nil {
		return err
	}
	done, err := s.Complete(ctx, prompt, n, stops, w.token)
	if endErr := w.end(); err == nil {
		err = endErr
	}
	if err != nil || !c.json {
		return err
	}
	r := runResult{Version: 1, PromptIDs: prompt, IDs: done.IDs, Stopped: "length"}
	if done.Stopped {
		r.Stopped = "eos"
	}
	if tok != nil {
		r.Text = &w.written
	}
	return c.print(r, "")
}

// encode turns the prompt into ids.
func (c *command) encode(tok *tokenizer.Tokenizer, tokErr error, text string) ([]int, error) {
	if tokErr != nil {
		return nil, fmt.Errorf("%w; --prompt-ids works without a tokenizer", tokErr)
	}
	if text == "-" {
		all, err := infile.ReadStream(c.stdin, "stdin", infile.Prompt)
		if err != nil {
			return nil, fmt.Errorf("reading the prompt: %w", err)
		}
		text = string(all)
	}
	ids, err := tok.Encode(text, true)
	if err != nil {
		return nil, &failure{fmt.Sprintf("the prompt cannot be encoded: %v", err)}
	}
	if len(ids) == 0 {
		return nil, &failure{"the prompt has no tokens, and this tokenizer adds none; give some text"}
	}
	return ids, nil
}

// loadTokenizer reads the tokenizer of a build; the error says why there is none.
func loadTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	path := filepath.Join(dir, host.TokenizerFile)
	data, err := infile.Read(path, infile.Tokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &host.BuildError{Path: path, What: "the model came without a tokenizer"}
	}
	if err != nil {
		return nil, &host.BuildError{Path: path, What: "it cannot be read", Err: err}
	}
	return tokenizer.Load(data)
}
