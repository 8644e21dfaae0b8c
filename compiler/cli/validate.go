package cli

import (
	"github.com/spf13/pflag"

	"amkc/interchange"
	"amkc/validate"
	"amkc/validate/kernel"
)

func validateVerb() verb {
	var backend string
	return verb{
		name: "validate", synopsis: "FILE|DIR [--backend auto|ref|kernel]", min: 1, max: 1,
		summary: "prove that a program can neither deadlock nor race",
		details: `
FILE is .amk text, native JSON, a program of the AMK profile, or a build, whose program.json is meant. Exit code 0:
proved; 1: rejected. amkc simulate shows an order in which a rejected program goes wrong.`,
		flags: func(f *pflag.FlagSet) {
			f.Var(newChoice(&backend, "auto", "auto", validate.Reference.String(), kernel.Backend.String()), "backend",
				"prove for the reference VM or for the generated kernel; auto: the kernel if the program names "+
					"a target")
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
	p, err := c.readProgram(path)
	if err != nil {
		return err
	}
	report, chosen, err := prove(c, p, backend)
	if err != nil {
		return err
	}
	s := report.Stats
	result.Backend, result.Stats = chosen.String(), s
	c.report(report.Diags.Warnings())
	if !report.OK {
		return report.Diags.Errors()
	}
	return c.printf("%s: proved for %s: %d tasks, %d counters, %d accesses in %d variants\n", path, chosen, s.Tasks,
		s.Counters, s.Accesses, s.Variants)
}

// prove proves a program for a backend, which is also returned.
func prove(c *call, p program, backend string) (validate.Report, validate.Backend, error) {
	if p.profile == nil {
		chosen := chooseBackend(backend, p.native.Target != nil)
		return validate.ProgramFor(chosen, p.native), chosen, nil
	}
	if backend == kernel.Backend.String() {
		return validate.Report{}, nil, c.usage("--backend %s does not apply to a program of the AMK profile: it is "+
			"one step of a model, which no kernel is generated from", backend)
	}
	report, err := proveProfile(c, p.profile)
	return report, validate.Reference, err
}

// chooseBackend: what names a target is meant for the kernel.
func chooseBackend(name string, target bool) validate.Backend {
	if name == kernel.Backend.String() || name == "auto" && target {
		return kernel.Backend
	}
	return validate.Reference
}

// proveProfile proves a program of the AMK profile for the reference VM: one step, without those before and after it.
func proveProfile(c *call, p *interchange.Program) (validate.Report, error) {
	flat, diags := p.Flatten()
	if diags.Err() != nil {
		return validate.Report{}, diags
	}
	c.report(diags)
	return validate.Flat(flat), nil
}
