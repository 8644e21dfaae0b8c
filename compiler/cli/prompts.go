package cli

import (
	"context"
	"encoding/json"
	"errors"

	sessions "amkc/app/engine"
	"amkc/app/front"
	"amkc/app/prompts"
	"amkc/app/serve"
	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/shape"
	"amkc/text/draft"
	"amkc/text/sampling"
)

// draftSeveral says how a model is built for drafts of several texts, unless that is said: with as many rows of each as
// a pass has room for.
func (p *place) draftSeveral(c *call, dir string) error {
	if isBuild(dir) || c.flags.Changed("sequence-rows") {
		return nil
	}
	if p.ofEach = shape.MaxTokens / max(1, p.sequences); p.sequences <= 1 || p.ofEach < 2 {
		return c.usage("--draft of several texts wants --sequences 2 to %d, for two rows of each in a pass",
			shape.MaxTokens/2)
	}
	return nil
}

// drafts is what --draft names, of several texts at a time or one, for an engine that verifies them.
func (o *opened) drafts(name, dir string, several bool) (draft.Drafter, error) {
	if name == "" {
		return nil, nil
	}
	wanted, of := "rows", "--rows 8"
	if several {
		wanted, of = "rows of several sequences", "--sequences 4 --sequence-rows 2"
	}
	if e, is := o.engine.(cudaEngine); is {
		if facts := e.Facts(); facts.VerifiesDrafts(several) {
			return draft.NGrams{}, nil
		}
	}
	return nil, diag.Errorf(codeNeedsBuild, dir, "has no passes of several %s to verify drafts by; want a build of "+
		"amkc MODEL -o DIR %s, and --device cuda", wanted, of)
}

// sequences is an engine for several sequences: as many at a time as the passes of a build take, or one after the
// other.
func (o *opened) sequences(b host.BatchOptions) serve.Engine {
	if cuda, is := o.engine.(cudaEngine); is {
		return diagnosed{sessions.New(cuda.Session, b), cuda.dir}
	}
	return serve.NewSingle(o, serve.Limits{Vocab: o.vocab, MaxSeq: o.maxSeq, Hidden: o.hidden}, o.chunk)
}

// A diagnosed engine is one of a session on a GPU whose errors are diagnostics.
type diagnosed struct {
	serve.Engine
	dir string
}

func (e diagnosed) Admit(prompt []int, o serve.Options) (serve.Sequence, int, error) {
	s, cached, err := e.Engine.Admit(prompt, o)
	return s, cached, hostError(e.dir, err)
}

func (e diagnosed) Step(ctx context.Context) ([]serve.Event, error) {
	events, err := e.Engine.Step(ctx)
	if errors.Is(err, serve.ErrLost) {
		return nil, err // which a server knows it by, and ends with
	}
	return events, hostError(e.dir, err)
}

// completions is the result of run --prompts in JSON.
type completions struct {
	Device  string           `json:"device"`
	Build   string           `json:"build,omitempty"` // in the cache
	Results []prompts.Result `json:"results"`
	Drafts  *draft.Stats     `json:"drafts,omitempty"`
}

// runPrompts completes the prompts of a file, and prints a line of JSON for each.
func (r *runFlags) runPrompts(ctx context.Context, c *call, dir string, choose sampling.Options, ends []int) error {
	data, err := r.input(c, "--prompts", r.Prompts)
	if err != nil {
		return err
	}
	all, err := prompts.Parse(data)
	if err != nil {
		return badLine(r.Prompts, err)
	}
	tok, missing := compiler.LoadTokenizer(dir)
	if missing != nil && len(r.Stops) > 0 {
		return needsTokenizer(missing)
	}
	if r.draft != "" {
		if err := r.place.draftSeveral(c, dir); err != nil {
			return err
		}
	}
	o, err := open(ctx, c, r.place, dir, &r.model)
	if err != nil {
		return err
	}
	defer o.Close()
	d, err := o.drafts(r.draft, dir, true)
	if err != nil {
		return err
	}
	jobs, err := prompts.Jobs(all, tok, missing, r.MaxTokens, serve.Limits{Vocab: o.vocab, MaxSeq: o.maxSeq})
	if err != nil {
		return badLine(r.Prompts, err)
	}
	if err := checkChoice(c, &choose, o); err != nil {
		return err
	}
	results := completions{Device: o.device, Build: o.build}
	err = prompts.Complete(ctx, o.sequences(front.Batch(jobs, shape.MaxTokens, d)), jobs,
		prompts.Options{Tokenizer: tok, Sampling: choose, Ends: ends, Stops: r.Stops}, func(r prompts.Result) error {
			results.Results = append(results.Results, r)
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			return c.printf("%s\n", line)
		})
	if err != nil {
		return badLine(r.Prompts, err)
	}
	if e, is := o.engine.(cudaEngine); is && d != nil {
		results.Drafts = new(e.Drafts())
	}
	c.payload = results
	return nil
}

// badLine is the diagnostic of a line that is at fault, and of logits that no token can be chosen by.
func badLine(path string, err error) error {
	var line *prompts.LineError
	var logits *sampling.LogitsError
	switch {
	case errors.As(err, &line):
		if path == "-" {
			path = "standard input"
		}
		return diag.Errorf(codePrompt, path, "%v", infile.Reason(err))
	case errors.As(err, &logits):
		return diag.Errorf(codeNoToken, "logits", "%v", infile.Reason(err))
	}
	return err
}
