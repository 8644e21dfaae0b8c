package costcheck

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/cost"
	"amkc/ir"
	"amkc/ir/diag"
)

const document = root + "docs/cost-model.md"

// TestDocument holds the tables of docs/cost-model.md to the model; -update writes them. The ratios of knobs, and the
// targets of which others have the same way to copy, are compared with AMKC_LONG.
func TestDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	have := string(text)
	tables := map[string]string{"measured": measuredTable(t, have), "constants": constantsTable(t),
		"targets": targetsTable(t, have), "passes": passTable(t, have),
		"prompts": promptTable(t)}
	if everything() {
		tables["knobs"], tables["candidates"] = knobsTable(t), candidatesTable(t)
	}
	holdTables(t, document, tables)
}

// holdTables compares tables of a document, by the names of the comments around them; -update writes them.
func holdTables(t *testing.T, file string, tables map[string]string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want := string(text)
	for name, table := range tables {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		require.True(t, found && closed, "%s has no place for the table %q", file, name)
		want = before + begin + table + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/costcheck -run %s -update", t.Name())
}

// columns are the kernels that a line of the table of rows has.
var columns = []string{"latency", "ceiling", "drain", "with barriers"}

// measuredTable has a line for each row whose times are compared. Those that are not predicted again are taken from the
// document.
func measuredTable(t testing.TB, text string) string {
	var b strings.Builder
	b.WriteString("\n| GPU | section | build | position |")
	for _, what := range columns {
		fmt.Fprintf(&b, " %s: predicted, µs | measured | error |", what)
	}
	b.WriteString("\n|---|---|---|---|" + strings.Repeat("---|", 3*len(columns)) + "\n")
	found, worst := map[string]comparison{}, map[string]float64{}
	for _, c := range compare(t) {
		found[c.name()] = c
	}
	var parts []string
	for _, r := range measured(t) {
		head := fmt.Sprintf("| %s | %s | %s | %d |", r.target.Name, r.Section, r.label(), r.Position)
		if r.slow() && !everything() {
			b.WriteString(lineOf(t, text, head))
			continue
		}
		b.WriteString(head)
		part := "section " + r.Section + " of the " + strings.ToUpper(r.target.Name)
		if _, seen := worst[part]; !seen {
			parts = append(parts, part)
		}
		for _, what := range columns {
			c, is := found[comparison{target: r.target.Name, id: r.ID, what: what}.name()]
			if !is {
				b.WriteString(" | | |")
				continue
			}
			note := ""
			if why, listed := beyond[c.name()]; listed {
				note = ", outside: " + why
			}
			fmt.Fprintf(&b, " %.1f | %.1f | %+.1f %%%s |", c.predicted, c.measured, 100*c.error(), note)
			worst[part] = math.Max(worst[part], math.Abs(c.error()))
		}
		b.WriteByte('\n')
	}
	if !everything() { // some were not predicted
		return b.String() + "\n" + lineOf(t, text, "Largest error:") + "\n"
	}
	b.WriteString("\nLargest error:")
	for i, part := range parts {
		fmt.Fprintf(&b, "%s %.1f %% in %s", map[bool]string{true: ",", false: ""}[i > 0], 100*worst[part], part)
	}
	b.WriteString(".\n\n")
	return b.String()
}

// shown are the models of the table of targets, at these positions.
var shown = []struct {
	model    string
	position int
}{
	{"smollm2-135m", 128}, {"qwen3-0.6b-as-llama", 128}, {"llama-3.2-1b", 128}, {"llama-3.2-1b", 8192},
	{"llama-3.1-8b", 128}, {"llama-3.1-8b", 8192},
}

// everything reports whether nothing is left out: in the long tests, and where tables are written.
func everything() bool { return *update || os.Getenv("AMKC_LONG") != "" }

// someTargets are one GPU for each way to copy weights, which stand for the rest.
func someTargets() []ir.Target {
	if everything() {
		return ir.Targets
	}
	var out []ir.Target
	for _, t := range ir.Targets {
		if !slices.ContainsFunc(out, func(o ir.Target) bool { return fallback(&o) == fallback(&t) }) {
			out = append(out, t)
		}
	}
	return out
}

// lineOf returns the line of a text that begins in a certain way.
func lineOf(t testing.TB, text, head string) string {
	_, rest, found := strings.Cut(text, "\n"+head)
	require.True(t, found, "%s has no line for %s", document, head)
	line, _, _ := strings.Cut(rest, "\n")
	return head + line + "\n"
}

// targetsTable takes the lines of targets that are not recomputed from the document.
func targetsTable(t testing.TB, text string) string {
	var b strings.Builder
	b.WriteString("\n| target | ring | ")
	for _, s := range shown {
		fmt.Fprintf(&b, "%s at %d | ", s.model, s.position)
	}
	b.WriteString("label |\n|---|---|" + strings.Repeat("---|", len(shown)) + "---|\n")
	for _, target := range ir.Targets {
		head := fmt.Sprintf("| %s, %s | ", target.Name, target.Arch)
		if !slices.ContainsFunc(someTargets(), func(t ir.Target) bool { return t.Name == target.Name }) {
			b.WriteString(lineOf(t, text, head))
			continue
		}
		b.WriteString(head)
		var cells, label, ring string
		for _, s := range shown {
			cell, p := targetCell(t, &target, s.model, s.position)
			if cells += cell + " | "; p != nil {
				label = p.Label
				if ring == "" || s.model == "llama-3.2-1b" {
					ring = fmt.Sprintf("%d slots, %s, %.0f GB/s", p.Ring.Slots, fallback(&target), p.Ring.Bandwidth)
				}
			}
		}
		fmt.Fprintf(&b, "%s | %s%s |\n", ring, cells, label)
	}
	b.WriteByte('\n')
	return b.String()
}

// targetCell is the latency in microseconds and the share of the ceiling, or the code of why there is none.
func targetCell(t testing.TB, target *ir.Target, model string, pos int) (string, *cost.Prediction) {
	p := compileAs(t, "amkc testdata/configs/"+model+" --dtype "+dtypeFor(target)+" --max-seq 8320", target, byDefault)
	if _, err := codegen.CUDA(p); err != nil {
		var d *diag.Diagnostic
		require.True(t, errors.As(err, &d), "%v", err)
		return "refused, " + d.Code, nil
	}
	m, err := cost.New(p)
	require.NoError(t, err)
	out, err := m.At(pos)
	require.NoError(t, err)
	for _, a := range out.Assumptions {
		if strings.Contains(a, "do not fit its memory") {
			return "does not fit", out
		}
	}
	return fmt.Sprintf("%.0f (%.0f %%)", out.Latency, 100*out.Share), out
}

// dtypeFor is the type that a target multiplies: fp16 where bf16 is not at home.
func dtypeFor(target *ir.Target) string {
	if target.TensorCores {
		return "bf16"
	}
	return "fp16"
}

func fallback(t *ir.Target) string {
	switch {
	case t.BulkCopy:
		return "bulk copies"
	case t.AsyncCopy:
		return "cp.async"
	}
	return "plain loads, FMA"
}
