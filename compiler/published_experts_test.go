package compiler

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
	"amkc/runtime/host"
)

const expertPositions = 8192

// publishedExperts are mixtures of experts of testdata/configs, with each format that docs/models.md shows.
var publishedExperts = []struct{ name, weights string }{{"gpt-oss-20b", "none"},
	{"gpt-oss-120b", "none"}, {"qwen3-30b-a3b", "none"},
	{"qwen3-30b-a3b", "int8"}, {"qwen3-30b-a3b", "int4"}, {"mixtral-8x7b", "none"}, {"mixtral-8x7b", "int4"}}

// What published mixtures of experts take, and which GPUs have room for them, is what docs/models.md says.
func TestPublishedExpertsFit(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n| model | experts | weights, GiB | read by a token, GiB | different ones of 2, 4, 8 tokens "+
		"| %s |\n|---|---|---|---|---|%s\n", strings.Join(publishedTargets, " | "),
		strings.Repeat("---|", len(publishedTargets)))
	gib := func(bytes uint64) float64 { return float64(bytes) / (1 << 30) }
	for _, m := range publishedExperts {
		of := func(target string) (*Scheduled, host.Footprint) {
			formats, err := passes.ParseWeightFormats(m.weights)
			require.NoError(t, err)
			l, err := RunPasses(Options{Model: filepath.Join(root, "configs", m.name), Name: "m",
				RandomSeed: new(uint64), LeaveOut: true, Target: ir.FindTarget(target), MaxSeq: expertPositions,
				Formats: formats})
			require.NoError(t, err, "%s for %s", m.name, target)
			f, err := Memory(l.Program)
			if err != nil {
				var d *diag.Diagnostic
				require.True(t, errors.As(err, &d) && d.Code == "AMK4005", "%s for %s: %s", m.name, target, err)
			}
			return l, f
		}
		l, f := of("h200")
		facts, err := codegen.Facts(l.Program)
		require.NoError(t, err)
		all, k := l.Program.Model.Most(ir.ExpertsOf), l.Program.Model.Most(ir.PerTokenOf)
		different := func(tokens int) float64 {
			return float64(all) * (1 - math.Pow(1-float64(k)/float64(all), float64(tokens)))
		}
		fmt.Fprintf(&table, "| %s | %d of %d | %.1f | %.2f | %.1f, %.1f, %.1f |",
			strings.TrimSuffix(m.name+" "+m.weights, " none"), k, all, gib(f.Weights),
			gib(uint64(facts.Traffic.Weights)), different(2), different(4), different(8))
		require.NoError(t, l.Close())
		for _, target := range publishedTargets {
			cell := "yes"
			if on := ir.FindTarget(target); f.Weights > uint64(on.HBMBytes) {
				cell = "no"
			} else {
				l, f := of(target)
				switch {
				case f == host.Footprint{}:
					cell = "no room in shared memory"
				case CheckMemory(on, f).Err() != nil:
					cell = "no"
				}
				require.NoError(t, l.Close())
			}
			fmt.Fprintf(&table, " %s |", cell)
		}
		table.WriteString("\n")
	}
	table.WriteString("\n")
	inDocument(t, "experts", table.String(), "PublishedExpertsFit")
}

// inDocument requires that a part of docs/models.md is a table, or writes it there.
func inDocument(t *testing.T, part, table, test string) {
	t.Helper()
	text, err := os.ReadFile(publishedDocument)
	require.NoError(t, err)
	begin, end := fmt.Sprintf("<!-- %s -->\n", part), fmt.Sprintf("<!-- end of %s -->\n", part)
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	require.True(t, found && closed)
	want := before + begin + table + end + after
	if *update {
		require.NoError(t, os.WriteFile(publishedDocument, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "go test ./compiler -run %s -update", test)
}
