package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"amkc/ir"
	"amkc/ir/amk"
	"amkc/validate"
)

func validateVerb() verb {
	var backend string
	return verb{
		name: "validate", synopsis: "FILE.json|FILE.amk", min: 1, max: 1,
		summary: "prove that a program can neither deadlock nor race, or say why not",
		details: "FILE is .amk text, native JSON, or a program of the AMK profile. Exit code 0: proved; 1: rejected.",
		flags: func(f *pflag.FlagSet) {
			f.Var(newChoice(&backend, "auto", "auto", validate.Reference.String(), validate.Kernel.String()), "backend",
				"prove for the reference VM or for the generated kernel; auto: the kernel if the program names a target")
		},
		run: func(c *call) error { return runValidate(c, backend) },
	}
}

func runValidate(c *call, backend string) error {
	path := c.args[0]
	result := struct {
		Stats   validate.Stats `json:"stats"`
		Backend string         `json:"backend,omitempty"` // absent if there was no program to prove
	}{}
	c.payload = &result
	text, err := readFile(path)
	if err != nil {
		return err
	}
	report, chosen, err := prove(c, path, text, backend)
	if err != nil {
		return err
	}
	s := report.Stats
	result.Backend, result.Stats = chosen.String(), s
	c.report(report.Diags.Warnings())
	if !report.OK {
		return report.Diags.Errors()
	}
	return c.printf("%s: proved for %s: %d tasks, %d counters, %d accesses in %d variants\n", path, chosen, s.Tasks, s.Counters, s.Accesses, s.Variants)
}

// prove reads a program in any form, checks that it is well-formed, and proves it for a backend, which is also returned. What the
// check refuses is not proved: the proof would mostly say the same.
func prove(c *call, path string, text []byte, backend string) (validate.Report, validate.Backend, error) {
	p, err := ir.Parse(text, path)
	switch {
	case errors.Is(err, ir.ErrProfile):
		if backend == validate.Kernel.String() {
			return validate.Report{}, 0, c.usage("--backend %s does not apply to a program of the AMK profile: it is one step of a model, which no kernel is generated from", backend)
		}
		report, err := proveProfile(c, path, text)
		return report, validate.Reference, err
	case err != nil:
		return validate.Report{}, 0, err
	}
	chosen := chooseBackend(backend, p.Target != nil)
	if diags := ir.Check(p); diags.Err() != nil {
		return validate.Report{Diags: diags}, chosen, nil
	}
	return validate.ProgramFor(chosen, p), chosen, nil
}

// chooseBackend: what names a target is meant for the kernel.
func chooseBackend(name string, target bool) validate.Backend {
	if name == validate.Kernel.String() || name == "auto" && target {
		return validate.Kernel
	}
	return validate.Reference
}

// proveProfile proves a program of the AMK profile for the reference VM: one step, without those before and after it.
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
