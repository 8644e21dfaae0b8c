package costcheck

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/cost"
	"amkc/ir"
	"amkc/ir/diag"
)

const document = root + "docs/cost-model.md"

// TestDocument holds the tables of docs/cost-model.md to the model; -update writes them.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	want := string(text)
	for name, table := range map[string]string{"measured": measuredTable(t), "constants": constantsTable(t), "knobs": knobsTable(t), "targets": targetsTable(t)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		require.True(t, found && closed, "%s has no place for the table %q", document, name)
		want = before + begin + table + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/costcheck -run Document -update")
}

func measuredTable(t testing.TB) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| section | model | position | what | predicted, µs | measured, µs | error |\n|---|---|---|---|---|---|---|\n")
	worst := map[string]float64{}
	var sections []string
	for _, c := range compare(t) {
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %.1f | %.1f | %+.1f %% |\n", c.section, c.model, c.position, c.what, c.predicted, c.measured, 100*c.error())
		if _, seen := worst[c.section]; !seen {
			sections = append(sections, c.section)
		}
		worst[c.section] = math.Max(worst[c.section], math.Abs(c.error()))
	}
	b.WriteString("\nLargest error:")
	for i, s := range sections {
		fmt.Fprintf(&b, "%s %.1f %% in section %s", map[bool]string{true: ",", false: ""}[i > 0], 100*worst[s], s)
	}
	b.WriteString(".\n\n")
	return b.String()
}

// shown are the models of the table of targets, at these positions.
var shown = []struct {
	model    string
	position int
}{
	{"smollm2-135m", 128}, {"qwen3-0.6b-as-llama", 128}, {"llama-3.2-1b", 128}, {"llama-3.2-1b", 8192}, {"llama-3.1-8b", 128}, {"llama-3.1-8b", 8192},
}

func targetsTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString("\n| target | ring | ")
	for _, s := range shown {
		fmt.Fprintf(&b, "%s at %d | ", s.model, s.position)
	}
	b.WriteString("label |\n|---|---|" + strings.Repeat("---|", len(shown)) + "---|\n")
	for i := range ir.Targets {
		target := ir.Targets[i]
		fmt.Fprintf(&b, "| %s, %s | ", target.Name, target.Arch)
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
