package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
)

// maxErrors is how many errors are printed without -e: the first few usually explain the rest.
const maxErrors = 20

// report prints diagnostics to stderr, sorted by position: as text, or as one JSON object each. Nothing is capped in
// JSON. What was reported before, as of a model that is opened twice, is not said again.
func (c *call) report(list diag.List) {
	if c.strict {
		list = list.Strict()
	}
	list = slices.DeleteFunc(slices.Clone(list), func(d *diag.Diagnostic) bool { return c.said[d.Error()] })
	slices.SortStableFunc(list, func(a, b *diag.Diagnostic) int { return comparePos(a.Pos, b.Pos) })
	c.diags.Add(list...)
	if c.said == nil {
		c.said = map[string]bool{}
	}
	for _, d := range list {
		c.said[d.Error()] = true
		switch {
		case c.quiet && d.Severity != diag.Error && !(c.verb.name == compileName && d.Code == compiler.CodeNoTool):
		case c.json:
			if text, err := marshal(d); err == nil {
				fmt.Fprintf(c.stderr, "%s\n", printable.Text(string(text)))
			}
		case d.Severity == diag.Error && c.shown >= maxErrors && !c.all:
			c.shown++
		default:
			if d.Severity == diag.Error {
				c.shown++
			}
			fmt.Fprintln(c.stderr, c.paint(d))
		}
	}
}

// closeReport says how much was left out.
func (c *call) closeReport() {
	if hidden := c.shown - maxErrors; hidden > 0 && !c.all && !c.json {
		fmt.Fprintf(c.stderr, "too many errors: %d more are not shown; -e shows them all\n", hidden)
	}
}

// paint formats a diagnostic, with the severity in colour where that is wanted.
func (c *call) paint(d *diag.Diagnostic) string {
	if !c.coloured() {
		return d.Error()
	}
	return d.Render(diag.Style{
		Pos: func(pos string) string { return "\x1b[1m" + pos + "\x1b[0m" },
		Severity: func(s diag.Severity) string {
			colour := "\x1b[1;31m"
			if s == diag.Warning {
				colour = "\x1b[1;33m"
			}
			return colour + string(s) + ":\x1b[0m"
		},
	})
}

func (c *call) coloured() bool {
	switch c.colour {
	case "always":
		return true
	case "never":
		return false
	}
	return progress.Colourful(c.stderr)
}

// asList turns an error into diagnostics. An error without a code is an unforeseen failure, and gets a code of
// its own.
func asList(pos string, err error) diag.List {
	var list diag.List
	var one *diag.Diagnostic
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = diag.List{one}
	case errors.Is(err, context.Canceled):
		return diag.List{diag.Errorf(codeInterrupted, pos, "interrupted before the work was done")}
	default:
		return diag.List{diag.Errorf(codeFailed, pos, "%s", infile.Describe(err))}
	}
	if context := strings.TrimSuffix(err.Error(), list.Error()); context != err.Error() && context != "" {
		list = slices.Clone(list)
		for i, d := range list {
			copied := *d
			list[i] = copied.With(strings.TrimSuffix(context, ": "))
		}
	}
	return list
}

// exitCode is 0 without an error, 130 after an interrupt, as of a process that Ctrl-C ends, 2 for bad usage and a
// broken environment, and 1 for everything that is the input's fault.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDifferent):
		return 1
	}
	for _, d := range asList("", err).Errors() {
		if d.Code == codeInterrupted.ID {
			return 130
		}
		broken, listed := exitsWith2[d.Code]
		if broken || !listed && strings.HasPrefix(d.Code, "AMK5") {
			return 2
		}
	}
	return 1
}

// exitsWith2 lists the codes whose exit code does not follow from their first digit: 5 is the environment, the rest
// is the input.
var exitsWith2 = map[string]bool{
	"AMK1030": true,  // the disk refuses a safetensors file
	"AMK5103": false, // the schedule is rejected
	"AMK5125": false, // the kernel lacks stages of the model
	"AMK6003": true,  // the key of verdicts
	"AMK6005": true,  // the files of a campaign
	"AMK6007": true,  // a campaign that another process works on
	"AMK6105": true,  // a measurement that failed
	"AMK6107": true,  // no nvcc
}

// comparePos orders positions as a reader does: numbers inside them by value, so that line 9 comes before line 10.
func comparePos(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
		if na > 0 && nb > 0 {
			da, db := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if order := cmp.Or(cmp.Compare(len(da), len(db)), strings.Compare(da, db)); order != 0 {
				return order
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}
