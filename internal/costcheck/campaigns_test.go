package costcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/search/prior"
)

// A trialRow is what a campaign has found of settings, from docs/results/campaigns/measured.jsonl.
type trialRow struct {
	Campaign           string
	Model, Target      string
	Role, Rung         string
	Settings, Baseline map[string]any // by path
	At                 []struct {
		Position  int
		Ratio     float64
		Predicted float64 `json:"predicted_us"`
		Baseline  float64 `json:"predicted_baseline_us"`
		Traits    map[string]float64
	}
}

// searched are the campaigns that docs/search.md speaks of: of one of them how many of its trials have a ratio that was
// predicted too, the RMS of the logarithm of measured over predicted, and that where a fifth is predicted by the rest.
var searched = map[string]struct {
	verdicts        int
	without, fitted float64
}{
	"llama-3.2-1b-cold-h200-earlier": {55, 0.124, 0.064}, "llama-3.2-1b-far-h200-earlier": {56, 0.026, 0.014},
	"qwen3-0.6b-cold-h200-earlier": {92, 0.052, 0.025}, "qwen3-0.6b-far-h200-earlier": {},
	"llama-3.2-1b-cold-h200": {}, "llama-3.2-1b-far-h200": {46, 0.024, 0.024},
	"qwen3-0.6b-cold-h200": {63, 0.058, 0.029}, "qwen3-0.6b-far-h200": {88, 0.0305, 0.0235},
	"llama-3.2-1b-far-h100": {}, "qwen3-0.6b-far-h100": {67, 0.0285, 0.0295},
	"qwen3-0.6b-overnight-h100": {37, 0.0375, 0.025},
}

// taught are what is learnt on H200s from the earlier ones, from those of now, and from both, each model by the other;
// on H100s; and, of those of now on both, each GPU by the other: how many verdicts there are, how far the cost model is
// off, and how far with what the other model, or GPU, teaches.
var taught = map[string]struct {
	verdicts       int
	without, error float64
	used           bool
}{
	"earlier": {231, 0.071, 0.055, true}, "now": {241, 0.041, 0.046, false}, "both": {472, 0.0575, 0.053, true},
	"h100": {165, 0.033, 0.081, false}, "gpus": {406, 0.038, 0.050, false},
}

// trialRows are those of these campaigns.
func trialRows(t *testing.T) (rows []trialRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/results/campaigns/measured.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var r trialRow
		require.NoError(t, json.Unmarshal(line, &r))
		if _, is := searched[r.Campaign]; is {
			rows = append(rows, r)
		}
	}
	return rows
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

// TestPriorOnCampaigns asks what the measured campaigns of one model teach about those of the other, and what four
// fifths of a campaign's own trials teach about the fifth that is left. docs/search.md has both.
func TestPriorOnCampaigns(t *testing.T) {
	others := map[string][]prior.Row{}
	own := map[string][]prior.Row{}
	for _, r := range trialRows(t) {
		sum, n := 0.0, 0.0
		for _, at := range r.At {
			if at.Predicted == 0 {
				continue
			}
			y := math.Log(at.Ratio * at.Baseline / at.Predicted)
			sum, n = sum+y, n+1
			if len(at.Traits) > 0 {
				row := prior.Row{Model: r.Model, X: at.Traits, Y: y}
				name, gpu := strings.TrimSuffix(r.Campaign, "-earlier"), "h200"
				if strings.HasSuffix(name, "-h100") {
					gpu = "h100"
				}
				of := prior.Row{Model: gpu, X: at.Traits, Y: y}
				switch {
				case gpu == "h100":
					others["h100"], others["gpus"] = append(others["h100"], row), append(others["gpus"], of)
				case name != r.Campaign:
					others["earlier"], others["both"] = append(others["earlier"], row), append(others["both"], row)
				default:
					others["now"], others["both"] = append(others["now"], row), append(others["both"], row)
					others["gpus"] = append(others["gpus"], of)
				}
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
		if n > 0 && r.Role != "start" {
			part := fnv.New32a() // the same whatever campaigns there are besides
			part.Write(text)
			fold := strconv.Itoa(int(part.Sum32() % 5))
			own[r.Campaign] = append(own[r.Campaign], prior.Row{Model: fold, X: x, Y: sum / n})
		}
	}
	for name, want := range taught {
		learnt := prior.FitTimes(others[name])
		t.Logf("%s: %d verdicts of %d models: RMS of the logarithm %.4f with the prior, %.4f without", name,
			learnt.Rows, learnt.Models, learnt.Error, learnt.Without)
		require.Equal(t, want.used, learnt.Used, "docs/search.md says so")
		require.InDelta(t, want.without, learnt.Without, 0.0005)
		require.InDelta(t, want.error, learnt.Error, 0.003, "by which trials are left out to choose a strength")
		require.Equal(t, want.verdicts, learnt.Rows)
	}
	for name, want := range searched {
		learnt := prior.FitTimes(own[name])
		t.Logf("%s: of %d verdicts each fifth by the others: %.4f, %.4f without", name, learnt.Rows, learnt.Error,
			learnt.Without)
		if want.verdicts == 0 {
			continue // too few to say anything of
		}
		require.Equal(t, want.verdicts, learnt.Rows, name)
		require.InDelta(t, want.without, learnt.Without, 0.0005, name)
		require.InDelta(t, want.fitted, learnt.Error, 0.0005, name)
	}
}
