package costcheck

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A trialRow is what a campaign has found of settings, from docs/results/campaigns/measured.jsonl.
type trialRow struct {
	Campaign           string
	Model, Target      string
	Role, Rung         string
	Settings, Baseline map[string]any // by path
	At                 []struct {
		Position int
		Ratio    float64
	}
}

// TestPositionsTheyDisagreeOn counts what docs/search.md says of a third interval of positions: verdicts at 2,048 and
// at 8,192, their settings, and those that gained 1 % at one of the two and lost at the other.
func TestPositionsTheyDisagreeOn(t *testing.T) {
	text, err := os.ReadFile("../../docs/results/campaigns/measured.jsonl")
	require.NoError(t, err)
	verdicts, disagree, settings := 0, 0, map[string]bool{}
	for line := range bytes.Lines(text) {
		var r trialRow
		require.NoError(t, json.Unmarshal(line, &r))
		at := map[int]float64{}
		for _, a := range r.At {
			at[a.Position] = a.Ratio
		}
		if at[2048] == 0 || at[8192] == 0 || maps.Equal(r.Settings, r.Baseline) {
			continue
		}
		verdicts++
		key, err := json.Marshal([]any{r.Model, r.Target, r.Settings})
		require.NoError(t, err)
		settings[string(key)] = true
		if min(at[2048], at[8192]) <= 0.99 && max(at[2048], at[8192]) > 1 {
			disagree++
		}
	}
	require.Equal(t, []int{95, 84, 1}, []int{verdicts, len(settings), disagree}, "docs/search.md says so")
}
