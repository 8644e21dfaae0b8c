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

// TestCandidatesHold holds the builds with defaults that candidates were measured beside, and the ratio of each
// candidate to them.
func TestCandidatesHold(t *testing.T) {
	if !everything() {
		t.Skip("compiles two builds for each verdict: AMKC_LONG=1")
	}
	text, err := os.ReadFile(root + "docs/results/candidates.json")
	require.NoError(t, err)
	var file struct{ Rows map[string]candidateRow }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Rows)
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(file.Rows)) {
		c := file.Rows[name]
		settings, err := c.Settings.Config()
		require.NoError(t, err, name)
		target := ir.FindTarget(c.Target)
		require.NotNil(t, target, name)
		// as bench/defaults.py has it
		config, most := "configs/"+c.Model, map[string]int{"smollm2-135m": 8192, "pycoder-5m": 1024}[c.Model]
		if c.Model == "pycoder-5m" {
			config = "models/" + c.Model
		}
		if most = cmp.Or(most, 8448); c.At[len(c.At)-1].Position >= most {
			most = 33024
		}
		r := row{target: target, Defaults: c.Defaults, Steps: 16,
			command: fmt.Sprintf("amkc testdata/%s --dtype bf16 --max-seq %d", config, most)}
		for _, at := range c.At {
			r.ID, r.Position = fmt.Sprintf("%s at %d", name, at.Position), at.Position
			base, changed := predictRow(t, r, byDefault).Latency, predictRow(t, r, settings).Latency
			seen[r.name()+" default"], seen[r.name()] = true, true
			hold(t, r.name()+" default", base, float64(at.Baseline))
			hold(t, r.name(), changed/base, float64(at.Candidate/at.Baseline))
		}
	}
	for name := range beyond {
		require.True(t, seen[name] || !strings.Contains(name, " at "), "%s is listed and was not measured", name)
	}
}
