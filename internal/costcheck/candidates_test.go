package costcheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/knobs"
)

// A candidateRow is a verdict on a candidate for a default, from docs/results/candidates.json.
type candidateRow struct {
	Model, Target, Candidate string
	Defaults                 int
	Settings                 knobs.Settings
	At                       []struct {
		Position  int
		Baseline  micros `json:"baseline_us"`
		Candidate micros `json:"candidate_us"`
	}
}

// A candidate is a verdict at one position: the build with defaults, and how many times as long the candidate takes.
type candidate struct {
	row      row // of the build with defaults
	settings ir.ScheduleConfig
	baseline micros
	ratio    float64
}

// candidates are the published verdicts, by name and position.
func candidates(t testing.TB) (out []candidate) {
	text, err := os.ReadFile(root + "docs/results/candidates.json")
	require.NoError(t, err)
	var file struct{ Rows map[string]candidateRow }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Rows)
	for _, name := range slices.Sorted(maps.Keys(file.Rows)) {
		c := file.Rows[name]
		settings, err := c.Settings.Config()
		require.NoError(t, err, name)
		target := ir.FindTarget(c.Target)
		require.NotNil(t, target, name)
		// what the candidates were compiled for
		config, most := "configs/"+c.Model, map[string]int{"smollm2-135m": 8192, "pycoder-5m": 1024}[c.Model]
		if c.Model == "pycoder-5m" {
			config = "models/" + c.Model
		}
		if most = cmp.Or(most, 8448); c.At[len(c.At)-1].Position >= most {
			most = 33024
		}
		_, id, _ := strings.Cut(name, "/")
		for _, at := range c.At {
			r := row{target: target, Defaults: c.Defaults, Steps: 16, Position: at.Position,
				ID:      fmt.Sprintf("candidates/%s at %d", id, at.Position),
				command: fmt.Sprintf("amkc testdata/%s --dtype bf16 --max-seq %d", config, most)}
			out = append(out, candidate{r, settings, at.Baseline, float64(at.Candidate / at.Baseline)})
		}
	}
	return out
}

// predict predicts both.
func (c *candidate) predict(t testing.TB) (baseline, ratio float64) {
	baseline = predictRow(t, c.row, byDefault).Latency
	return baseline, predictRow(t, c.row, c.settings).Latency / baseline
}

// TestCandidatesHold holds the builds with defaults that candidates were measured against, and the ratio of each
// candidate to them.
func TestCandidatesHold(t *testing.T) {
	if !everything() {
		t.Skip("compiles two builds for each verdict: AMKC_LONG=1")
	}
	for _, c := range candidates(t) {
		baseline, ratio := c.predict(t)
		hold(t, c.row.name()+" default", baseline, float64(c.baseline))
		hold(t, c.row.name(), ratio, c.ratio)
	}
}

// candidatesTable has a line for each verdict at a position.
func candidatesTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString("\n| GPU | candidate | default: predicted, µs | measured | error | ratio: predicted | measured | " +
		"off by |\n|---|---|---|---|---|---|---|---|\n")
	off := func(name string, predicted, measured float64) string {
		note := ""
		if why, listed := beyond[name]; listed {
			note = ", outside: " + why
		}
		return fmt.Sprintf("%+.1f %%%s", 100*(predicted/measured-1), note)
	}
	for _, c := range candidates(t) {
		baseline, ratio := c.predict(t)
		fmt.Fprintf(&b, "| %s | %s | %.1f | %.1f | %s | %.3f | %.3f | %s |\n", c.row.target.Name,
			strings.TrimPrefix(c.row.ID, "candidates/"), baseline, c.baseline,
			off(c.row.name()+" default", baseline, float64(c.baseline)), ratio, c.ratio,
			off(c.row.name(), ratio, c.ratio))
	}
	b.WriteByte('\n')
	return b.String()
}
