package cli

import (
	"amkc/compiler"
	"amkc/validate"
)

func verifyVerb() verb {
	return verb{
		name: "verify", synopsis: "DIR", min: 1, max: 1,
		summary: "check that a build matches its program",
		details: `
Compares every file with its digest in the manifest, reads the schedule back from the generated headers, proves it
again and compares it with program.json, and the generated files with what amkc emits for that (docs/verify.md). Exit
code 0: they match; 1: they do not.`,
		run: runVerify,
	}
}

func runVerify(c *call) error {
	dir := c.args[0]
	line := c.progress()
	v, err := compiler.Verify(dir, line.Show)
	line.Clear()
	if err != nil {
		return err
	}
	c.payload = struct {
		Files   int            `json:"files"`
		Emitted int            `json:"emitted"`
		Stages  int            `json:"stages"`
		Stats   validate.Stats `json:"stats"`
	}{v.Files, v.Emitted, v.Stages, v.Proof.Stats}
	c.report(v.Findings.Warnings())
	if v.Findings.Err() != nil {
		return v.Findings.Errors()
	}
	return c.printf("%s: %d files have their digests, %d stages read back from the headers, %d tasks of them "+
		"proved, %d files are what the program gives\n",
		dir, v.Files, v.Stages, v.Proof.Stats.Tasks, v.Emitted)
}
