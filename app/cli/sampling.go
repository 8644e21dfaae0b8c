package cli

import (
	"context"
	"errors"
	"flag"

	"amkc/runtime/host"
	"amkc/text/draft"
	"amkc/text/sampling"
)

// samplingFlags adds the flags that say how tokens are chosen; what prints no log-probabilities has no flag for them.
func samplingFlags(set *flag.FlagSet, logProbs bool) *sampling.Flags {
	f := &sampling.Flags{}
	set.BoolVar(&f.Sample, "sample", false, sampling.SampleDoc)
	for _, v := range f.Values() {
		if v.Name != "logprobs" || logProbs {
			set.Var(v, v.Name, v.Doc)
		}
	}
	return f
}

// sampling returns what the flags of a verb ask for.
func (c *command) sampling(verb string, f *sampling.Flags) (sampling.Options, error) {
	o, err := f.Options(c.dir)
	var usage *sampling.UsageError
	var option *sampling.OptionError
	switch {
	case errors.As(err, &usage):
		return o, usagef("%s: %v", verb, err)
	case err != nil:
		return o, err
	case o.LogProbs >= 0 && !c.json:
		return o, usagef("%s: --logprobs goes with --json", verb)
	}
	if err := o.Check(c.launcher.Model.Vocab); errors.As(err, &option) {
		return o, usagef("%s: --%v", verb, err)
	}
	return o, nil
}

// decode completes a prompt, whose first tokens the session has decoded already, as many as its position says: on the
// GPU alone if the kernel can choose the tokens on its own, and otherwise choosing each here. Then it returns the
// choices too. d, if not nil, drafts, and stats counts what that was good for.
func decode(ctx context.Context, s watched, o sampling.Options, d draft.Drafter, prompt []int, n int, stops []int,
	emit func(id int) error) (done host.Completion, choices []sampling.Choice, stats draft.Stats, err error) {
	if d != nil {
		d = draft.After(prompt[:s.Position()], d) // what was decoded before is a part of the prompt
	}
	if s.Choose(&o, sampling.Text{Prompt: prompt}) {
		s.SetDrafter(d)
		done, err = s.Complete(ctx, prompt[s.Position():], n, stops, emit)
		return done, nil, s.Drafts(), err
	}
	// The last token chosen is not decoded, so it takes no position.
	if steps, maxSeq := len(prompt)+n-1, s.Facts().Model.MaxSeq; steps > maxSeq {
		return done, nil, stats, &host.PositionError{Steps: steps, MaxSeq: maxSeq}
	}
	sampler, err := sampling.New(o, s.Facts().Model.Vocab, prompt)
	if err != nil {
		return done, nil, stats, err
	}
	fresh := prompt[s.Position():]
	chosen := func(c sampling.Choice) error {
		done.IDs = append(done.IDs, c.ID)
		choices = append(choices, c)
		return emit(c.ID)
	}
	done.Stopped, err = sampling.CompleteDrafted(ctx, s, sampler, fresh, n, stops, d, &stats, chosen)
	return done, choices, stats, err
}
