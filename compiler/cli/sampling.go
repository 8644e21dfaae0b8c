package cli

import (
	"errors"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/text/sampling"
)

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

// noToken gives the error of logits that leave no token a code.
func noToken(err error) error {
	var logits *sampling.LogitsError
	if errors.As(err, &logits) {
		return diag.Errorf(codeNoToken, "logits", "%v", logits)
	}
	return err
}
