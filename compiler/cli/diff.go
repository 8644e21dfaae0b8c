package cli

import (
	"fmt"

	"amkc/compiler/diff"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
)

func diffVerb() verb {
	return verb{
		name: "diff", synopsis: "DIR_A DIR_B", min: 2, max: 2,
		summary: "compare two builds: hunks for text, digests for the rest",
		details: "Exit code 0: the same; 1: different; 2: they could not be compared.",
		run:     runDiff,
	}
}

func runDiff(c *call) error {
	a, b := c.args[0], c.args[1]
	changes, err := diff.Trees(a, b)
	if err != nil {
		return diag.Errorf(codeInput, c.verb.title(), "cannot compare: %v", infile.Describe(err))
	}
	c.payload = struct {
		Same    bool          `json:"same"`
		Changes []diff.Change `json:"changes"`
	}{len(changes) == 0, append([]diff.Change{}, changes...)}
	for i := range changes {
		if err := c.printf("%s", describeChange(a, b, &changes[i])); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		return errDifferent
	}
	return nil
}

// describeChange prints a change as diff -ru does, as far as that goes.
func describeChange(a, b string, c *diff.Change) string {
	path := printable.Line(c.Path) // of a build that somebody else may have made
	switch c.Kind {
	case diff.OnlyInA:
		return fmt.Sprintf("only in %s: %s\n", a, path)
	case diff.OnlyInB:
		return fmt.Sprintf("only in %s: %s\n", b, path)
	case diff.Binary:
		return fmt.Sprintf("binary %s differs\n  %s: %d bytes, sha256:%s\n  %s: %d bytes, sha256:%s\n",
			path, a, c.A.Bytes, c.A.SHA256, b, c.B.Bytes, c.B.SHA256)
	}
	return fmt.Sprintf("--- %s/%s\n+++ %s/%s\n%s", a, path, b, path, c.Hunks)
}
