package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/text/draft"
	"amkc/text/sampling"
)

// defineSampling adds the flags that say how tokens are chosen; what prints no log-probabilities has no flag for them.
func defineSampling(set *pflag.FlagSet, f *sampling.Flags, logProbs bool) {
	set.BoolVar(&f.Sample, "sample", false, sampling.SampleDoc)
	for _, v := range f.Values() {
		if v.Name != "logprobs" || logProbs {
			set.Var(v, v.Name, v.Doc)
		}
	}
}

// choose returns how the flags say that tokens of a model or a build are chosen.
func choose(c *call, f *sampling.Flags, dir string) (sampling.Options, error) {
	o, err := compiler.Sampling(dir, f)
	var usage *sampling.UsageError
	switch {
	case errors.As(err, &usage):
		return o, c.usage("%v", usage)
	case err == nil && o.LogProbs >= 0 && !c.json:
		return o, c.usage("--logprobs goes with --json")
	}
	return o, err
}

// checkChoice refuses options that are not for the model, and says how tokens will be drawn, if they are: the model may
// have decided most of it, and a seed that was made up is wanted for doing the same again.
func checkChoice(c *call, o *sampling.Options, e *opened) error {
	var option *sampling.OptionError
	if err := o.Check(e.vocab); errors.As(err, &option) {
		return c.usage("--%v", option)
	}
	if o.Temperature != 0 {
		c.note("sampling: %v", o)
	}
	return nil
}

// complete decodes a prompt and up to n tokens after it, until one of stops, and gives each to emit. The engine chooses
// the tokens if it can. If not, its logits are looked at here, and the choices returned too. d, if not nil, drafts, for
// an engine with passes of several rows, and stats counts what that was good for.
func complete(ctx context.Context, e *opened, o sampling.Options, d draft.Drafter, prompt []int, n int, stops []int,
	emit func(id int) error) (done host.Completion, choices []sampling.Choice, stats draft.Stats, err error) {
	cuda, _ := e.engine.(cudaEngine)
	if e.Choose(&o, sampling.Text{Prompt: prompt}) {
		if d != nil {
			cuda.SetDrafter(d)
		}
		if done, err = e.Complete(ctx, prompt, n, stops, emit); d != nil {
			stats = cuda.Drafts()
		}
		return done, nil, stats, noToken(err)
	}
	sampler, err := sampling.New(o, e.vocab, prompt)
	if err != nil {
		return done, nil, stats, err
	}
	chosen := func(c sampling.Choice) error {
		done.IDs = append(done.IDs, c.ID)
		choices = append(choices, c)
		return emit(c.ID)
	}
	if d == nil {
		done.Stopped, err = sampling.Complete(ctx, e, sampler, prompt, n, stops, chosen)
	} else {
		done.Stopped, err = sampling.CompleteDrafted(ctx, cuda, sampler, prompt, n, stops, d, &stats, chosen)
	}
	return done, choices, stats, noToken(err)
}

// noToken gives the error of logits that leave no token a code.
func noToken(err error) error {
	var logits *sampling.LogitsError
	if errors.As(err, &logits) {
		return diag.Errorf(codeNoToken, "logits", "%v", logits)
	}
	return err
}
