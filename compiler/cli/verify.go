package cli

import (
	"amkc/compiler"
	"amkc/validate"
)

func verifyVerb() verb {
	return verb{
		name: "verify", synopsis: "DIR", min: 1, max: 1,
		summary: "check that a build is what its program says",
		details: "Checks every digest of the manifest, reads the schedule back out of the generated headers, proves " +
			"it again and\n" +
			"compares it with program.json, and compares the generated files with what that would emit " +
			"(docs/verify.md).\n" +
			"Exit code 0: it is; 1: it is not.",
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
