package cli

import (
	"errors"

	"amkc/ir"
	"amkc/ir/amk"
	"amkc/validate"
)

func validateVerb() verb {
	return verb{
		name: "validate", synopsis: "FILE.json|FILE.amk", min: 1, max: 1,
		summary: "prove that a program can neither deadlock nor race, or say why not",
		details: "FILE is .amk text, native JSON, or a program of the AMK profile. Exit code 0: proved; 1: rejected.",
		run:     runValidate,
	}
}

func runValidate(c *call) error {
	path := c.args[0]
	text, err := readFile(path)
	if err != nil {
		return err
	}
	report, err := prove(c, path, text)
	if err != nil {
		return err
	}
	s := report.Stats
	c.payload = struct {
		Stats validate.Stats `json:"stats"`
	}{s}
	c.report(report.Diags.Warnings())
	if !report.OK {
		return report.Diags.Errors()
	}
	return c.printf("%s: proved: %d tasks, %d counters, %d accesses in %d variants\n", path, s.Tasks, s.Counters, s.Accesses, s.Variants)
}

// prove reads a program in any form and proves it.
func prove(c *call, path string, text []byte) (validate.Report, error) {
	p, err := ir.Parse(text, path)
	switch {
	case errors.Is(err, ir.ErrProfile):
		return proveProfile(c, path, text)
	case err != nil:
		return validate.Report{}, err
	}
	return validate.Program(p), nil
}

// proveProfile proves a program of the AMK profile, which is one variant without loops.
func proveProfile(c *call, path string, text []byte) (validate.Report, error) {
	p, diags := amk.Parse(text, path)
	if diags.Err() != nil {
		return validate.Report{}, diags
	}
	c.report(diags)
	flat, diags := p.Flatten()
	if diags.Err() != nil {
		return validate.Report{}, diags
	}
	c.report(diags)
	return validate.Flat(flat), nil
}
