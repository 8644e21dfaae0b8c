package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"amkc/app/engine"
	"amkc/app/prompts"
	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
	"amkc/text/draft"
	"amkc/text/tokenizer"
)

// stepsOfPrompts is how many steps a launch has where nobody waits for single tokens.
const stepsOfPrompts = 16

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
	read := 0
	for _, job := range jobs {
		read = max(read, len(job.IDs))
	}
	e := engine.New(s, host.BatchOptions{Steps: stepsOfPrompts, Prompt: read * s.Sequences(), Drafter: d})
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
