package costcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/search/prior"
)

// A trialRow is what a campaign has found of settings, from docs/results/campaigns/measured.jsonl.
type trialRow struct {
	Campaign           string
	Model, Role, Rung  string
	Settings, Baseline map[string]any // by path
	At                 []struct {
		Ratio     float64
		Predicted float64 `json:"predicted_us"`
		Baseline  float64 `json:"predicted_baseline_us"`
		Traits    map[string]float64
	}
}

func trialRows(t *testing.T) (rows []trialRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/results/campaigns/measured.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var r trialRow
		require.NoError(t, json.Unmarshal(line, &r))
		rows = append(rows, r)
	}
	return rows
}

// TestPriorOnCampaigns asks what the measured campaigns of one model teach about those of the other, and what four
// fifths of a campaign's own trials teach about the fifth that is left. docs/search.md has both.
func TestPriorOnCampaigns(t *testing.T) {
	var others []prior.Row
	own := map[string][]prior.Row{}
	part := map[string]int{}
	for _, r := range trialRows(t) {
		sum, n := 0.0, 0.0
		for _, at := range r.At {
			if at.Predicted == 0 {
				continue
			}
			y := math.Log(at.Ratio * at.Baseline / at.Predicted)
			sum, n = sum+y, n+1
			if len(at.Traits) > 0 {
				others = append(others, prior.Row{Model: r.Model, X: at.Traits, Y: y})
			}
		}
		x := map[string]float64{}
		for path, v := range r.Settings {
			x[path+"="+fmt.Sprint(v)]++
		}
		for path, v := range r.Baseline {
			x[path+"="+fmt.Sprint(v)]--
		}
		text, err := json.Marshal(r.Settings)
		require.NoError(t, err)
		if _, is := part[string(text)]; !is {
			part[string(text)] = len(part) % 5
		}
		if n > 0 && r.Role != "start" {
			own[r.Campaign] = append(own[r.Campaign], prior.Row{Model: strconv.Itoa(part[string(text)]), X: x, Y: sum / n})
		}
	}
	learnt := prior.FitTimes(others)
	t.Logf("%d verdicts of %d models: RMS of the logarithm %.4f with the prior, %.4f without", learnt.Rows,
		learnt.Models, learnt.Error, learnt.Without)
	require.True(t, learnt.Used)
	require.InDelta(t, 0.071, learnt.Without, 0.0005, "docs/search.md says so")
	require.InDelta(t, 0.055, learnt.Error, 0.003, "by which trials are left out to choose how much is regularised")
	for name, want := range map[string][2]float64{"qwen3-0.6b-cold-h200": {0.052, 0.026},
		"llama-3.2-1b-cold-h200": {0.124, 0.063}, "llama-3.2-1b-far-h200": {0.026, 0.014}} {
		learnt := prior.FitTimes(own[name])
		t.Logf("%s: of %d verdicts each fifth by the others: %.4f, %.4f without", name, learnt.Rows, learnt.Error,
			learnt.Without)
		require.InDelta(t, want[0], learnt.Without, 0.0005, name)
		require.InDelta(t, want[1], learnt.Error, 0.0005, name)
	}
}
