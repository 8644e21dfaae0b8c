package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"amkc/compiler"
	"amkc/compiler/diff"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
)

func diffVerb() verb {
	return verb{
		name: "diff", synopsis: "DIR_A DIR_B", min: 2, max: 2,
		summary: "compare two builds: knobs first, then files",
		details: "The knobs of the schedule that differ come first, then the files: text in hunks, the rest by its " +
			"digest. The manifest, which has the digests of the others, is last. Exit code 0: the same; 1: " +
			"different; 2: they could not be compared.",
		run: runDiff,
	}
}

func runDiff(c *call) error {
	a, b := c.args[0], c.args[1]
	changes, err := diff.Trees(a, b)
	if err != nil {
		return diag.Errorf(codeInput, c.verb.title(), "cannot compare: %v", infile.Describe(err))
	}
	manifest := func(c diff.Change) bool { return c.Path == host.ManifestFile }
	if i := slices.IndexFunc(changes, manifest); i >= 0 {
		changes = append(slices.Delete(slices.Clone(changes), i, i+1), changes[i])
	}
	knobs := changedKnobs(a, b)
	c.payload = struct {
		Same    bool          `json:"same"`
		Knobs   []knobChange  `json:"knobs,omitempty"`
		Changes []diff.Change `json:"changes"`
	}{len(changes) == 0, knobs, append([]diff.Change{}, changes...)}
	for _, k := range knobs {
		if err := c.printf("knob %s: %s in %s, %s in %s\n", k.Path, stated(k.A), a, stated(k.B), b); err != nil {
			return err
		}
	}
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

// A knobChange is a knob that two builds set differently.
type knobChange struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a,omitempty"` // absent: not set
	B    json.RawMessage `json:"b,omitempty"`
}

// changedKnobs compares the schedules of two builds. A directory without a program that can be read has no knobs: what
// is wrong with it is a difference of files, and for verify to say.
func changedKnobs(dirA, dirB string) []knobChange {
	changed := []knobChange{}
	a, b := knobsOf(dirA), knobsOf(dirB)
	if a == nil || b == nil {
		return changed
	}
	all := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(all)
	for _, path := range slices.Compact(all) {
		if string(a[path]) != string(b[path]) {
			changed = append(changed, knobChange{path, a[path], b[path]})
		}
	}
	return changed
}

// knobsOf returns the values of the configuration in the program of a build, by path.
func knobsOf(dir string) map[string]json.RawMessage {
	text, err := infile.Read(filepath.Join(dir, compiler.ProgramFile), infile.Program)
	if err != nil {
		return nil
	}
	p, err := ir.Load(text, dir)
	if err != nil {
		return nil
	}
	out := map[string]json.RawMessage{}
	config, err := p.Config.MarshalJSON()
	if err != nil {
		return nil
	}
	flatten(out, "", config)
	return out
}

// flatten adds the values of an object, those of objects in it under longer paths.
func flatten(out map[string]json.RawMessage, path string, value json.RawMessage) {
	var group map[string]json.RawMessage
	if json.Unmarshal(value, &group) != nil {
		out[path] = value
		return
	}
	for name, v := range group {
		flatten(out, strings.TrimPrefix(path+"."+name, "."), v)
	}
}

func stated(value json.RawMessage) string {
	if value == nil {
		return "not set"
	}
	return string(value)
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
