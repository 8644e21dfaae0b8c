package prompts

import (
	"context"
	"fmt"
	"slices"

	"amkc/app/serve"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// Reasons why a text has ended, as OpenAI's API has them.
const (
	finishStop   = "stop"   // with a token that ends texts, or a stop string
	finishLength = "length" // with the last token that was asked for
)

// A Result is the result of a prompt: a line of the output.
type Result struct {
	Line      int     `json:"line"` // of the prompt
	PromptIDs []int   `json:"prompt_ids"`
	IDs       []int   `json:"ids"`            // up to the token that ended the text, or completed a stop string
	Text      *string `json:"text,omitempty"` // without special tokens; absent without a tokenizer
	Finish    string  `json:"finish_reason"`
	*sampling.Report
}

// Options say how prompts are completed.
type Options struct {
	Tokenizer *tokenizer.Tokenizer // nil: results have no text
	Sampling  sampling.Options     // of each, with noise of its own positions
	Ends      []int                // ids that end a text
	Stops     []string             // strings before which one ends; none without a tokenizer
}

// Complete decodes after each prompt, as many prompts at a time as the engine takes, and gives the results to emit in
// the order of the jobs, as soon as those before them are there. It returns the first error of the engine, of a sampler
// or of emit.
func Complete(ctx context.Context, e serve.Engine, jobs []Job, o Options, emit func(Result) error) error {
	c := &completer{engine: e, jobs: jobs, o: o, running: map[serve.Sequence]*text{}, done: make([]*Result, len(jobs))}
	defer func() {
		for s := range c.running {
			e.Retire(s)
		}
	}()
	for printed := 0; printed < len(jobs); {
		if err := c.admit(); err != nil {
			return err
		}
		events, err := e.Step(ctx)
		if err != nil {
			return err
		}
		for _, event := range events {
			if err := c.accept(event); err != nil {
				return err
			}
		}
		for ; printed < len(jobs) && c.done[printed] != nil; printed++ {
			if err := emit(*c.done[printed]); err != nil {
				return err
			}
			c.done[printed] = &Result{} // it may be long
		}
	}
	return nil
}

// A completer is what Complete works on.
type completer struct {
	engine  serve.Engine
	jobs    []Job
	o       Options
	next    int // job to be admitted
	running map[serve.Sequence]*text
	done    []*Result // by job; nil: not yet
}

// A text is a prompt that is being completed.
type text struct {
	job     int
	ids     []int
	says    *Text             // nil: there is no tokenizer
	sampler *sampling.Sampler // nil: what the engine chooses
	choices []sampling.Choice
}

// admit gives the engine what it has room for.
func (c *completer) admit() error {
	limits := c.engine.Limits()
	for c.next < len(c.jobs) && len(c.running) < limits.Sequences {
		job := &c.jobs[c.next]
		t, choose := &text{job: c.next}, &c.o.Sampling
		if c.o.Tokenizer != nil {
			t.says = NewText(c.o.Tokenizer, job.IDs, c.o.Stops)
		}
		if !c.engine.Chooses(&c.o.Sampling, false, false) {
			var err error
			if t.sampler, err = sampling.New(c.o.Sampling, limits.Vocab, job.IDs); err != nil {
				return err
			}
			choose = nil
		}
		s, _, err := c.engine.Admit(job.IDs, serve.Options{Logits: t.sampler != nil, Most: job.Most, Ends: c.o.Ends,
			Sampling: choose})
		if err != nil {
			return &LineError{job.Line, err.Error()}
		}
		c.running[s] = t
		c.next++
	}
	return nil
}

// accept takes a token of a text.
func (c *completer) accept(event serve.Event) error {
	t := c.running[event.Sequence]
	if t == nil {
		return nil // it has ended with an event before
	}
	if event.Err != nil {
		return fmt.Errorf("line %d: %w", c.jobs[t.job].Line, event.Err)
	}
	job, choice := &c.jobs[t.job], sampling.Choice{ID: event.Token}
	if t.sampler != nil {
		var err error
		if choice, err = t.sampler.Next(event.Logits, nil); err != nil {
			return fmt.Errorf("line %d: %w", job.Line, err)
		}
		t.choices = append(t.choices, choice)
	}
	t.ids = append(t.ids, choice.ID)
	stopped := slices.Contains(c.o.Ends, choice.ID)
	if t.says != nil {
		_, found := t.says.Push(choice.ID)
		stopped = stopped || found
	}
	if !stopped && len(t.ids) < job.Most {
		if t.sampler != nil {
			c.engine.Replace(event.Sequence, choice.ID)
		}
		return nil
	}
	c.engine.Retire(event.Sequence)
	delete(c.running, event.Sequence)
	r := &Result{Line: job.Line, PromptIDs: job.IDs, IDs: t.ids, Finish: finishLength,
		Report: c.o.Sampling.Report(t.choices)}
	if t.says != nil {
		_, found := t.says.End()
		r.Text, stopped = &t.says.Written, stopped || found
	}
	if stopped {
		r.Finish = finishStop
	}
	c.done[t.job] = r
	return nil
}
