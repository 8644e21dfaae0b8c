package cli

import (
	"errors"

	"amkc/runtime/host"
	"amkc/text/draft"
	"amkc/text/sampling"
)

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

// drafter is what --draft of a verb names, for a build that verifies drafts of one text, or of several at a time.
func (c *command) drafter(verb, name string, facts *host.Facts, several bool) (draft.Drafter, error) {
	switch {
	case name != draft.NGram:
		return nil, usagef("%s: --draft %q; %s is known", verb, name, draft.NGram)
	case several && !facts.VerifiesDrafts(true):
		return nil, &host.BuildError{Path: c.dir,
			What:   "it has no passes of several rows of several sequences to verify drafts by",
			Remedy: "compile with --sequences 4 --sequence-rows 2"}
	case !several && !facts.VerifiesDrafts(false):
		return nil, &host.BuildError{Path: c.dir, What: "it has no passes of several rows to verify drafts by",
			Remedy: "compile with --rows 8"}
	}
	return draft.NGrams{}, nil
}
