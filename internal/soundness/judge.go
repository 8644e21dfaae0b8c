package soundness

import (
	"slices"

	"amkc/internal/population"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/simulate"
	"amkc/validate"
	"amkc/validate/kernel"
)

// A Judgement is what validate and the oracles say of one program.
type Judgement struct {
	Case    population.Case
	Diags   diag.List // errors of validate, or of what comes before it; none: accepted
	Verdict simulate.Verdict
	Fit     [2]simulate.Fit // of the operands: what validate says, and what the reference VM says
	Misfit  string          // what the reference VM finds wrong with them
}

// FalseAccept reports whether validate accepts what an oracle has seen go wrong.
func (j *Judgement) FalseAccept() bool { return len(j.Diags) == 0 && j.Verdict.Unsafe() }

// Compared reports whether both have looked at the operands.
func (j *Judgement) Compared() bool {
	return j.Fit[0] != simulate.Unknown && j.Fit[1] != simulate.Unknown
}

// Disagree reports whether validate refuses operands that the reference VM takes, or the other way round.
func (j *Judgement) Disagree() bool { return j.Compared() && j.Fit[0] != j.Fit[1] }

// Ordered reports whether a program goes wrong in some order of its tasks. What is wrong with the others is wrong
// whatever the order, and was found without running one.
func (j *Judgement) Ordered() bool {
	if !j.Verdict.Unsafe() {
		return false
	}
	switch j.Verdict.Hazard.Kind {
	case simulate.Race, simulate.Undefined, simulate.Clobbered, simulate.WhichProducer, simulate.Stuck:
		return true
	}
	return false
}

// unread reports whether what reads a program for validate and for the oracles alike refuses it.
func unread(c *population.Case) bool {
	if c.Profile != nil {
		f, _ := c.Profile.Flatten()
		return f == nil
	}
	return c.Program != nil && slices.ContainsFunc(c.Program.Variants, func(v ir.Variant) bool {
		f, _ := ir.Unroll(c.Program, &v)
		return f == nil
	})
}

// Judge asks both.
func Judge(c population.Case, fp *simulate.Footprints, e simulate.Effort) Judgement {
	j := Judgement{Case: c, Diags: Validate(c), Verdict: Simulate(c, fp, e)}
	j.Fit[0] = fitOf(j.Diags)
	if j.Fit[0] != simulate.Unknown {
		j.Fit[1], j.Misfit = refvmFit(c, fp, e)
	}
	return j
}

// Simulate returns what the oracles have seen.
func Simulate(c population.Case, fp *simulate.Footprints, e simulate.Effort) simulate.Verdict {
	switch {
	case c.Profile != nil:
		return runProfile(c.Profile, fp, e)
	case c.Program != nil:
		return simulate.Program(c.Program, fp, e)
	case c.Kernel:
		return simulate.Flat(simulate.Ahead(c.Flat), c.Target, fp, e)
	}
	return simulate.Flat(c.Flat, c.Target, fp, e)
}

// Validate returns the errors for which a program is rejected.
func Validate(c population.Case) diag.List {
	switch {
	case c.Program != nil:
		return validate.Program(c.Program).Diags.Errors()
	case c.Kernel:
		return validate.FlatFor(kernel.Backend, c.Flat).Diags.Errors()
	case c.Flat != nil:
		return validate.Flat(c.Flat).Diags.Errors()
	}
	flat, diags := c.Profile.Flatten()
	if flat == nil {
		return diags.Errors()
	}
	return validate.Flat(flat).Diags.Errors()
}
