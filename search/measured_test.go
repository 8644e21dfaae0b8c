package search

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// Each verdict of the published campaigns is predicted by those before it, from the ninth on: the RMS of the logarithm
// of measured over predicted, without and with what was learnt. docs/search.md has these numbers.
func TestCorrectionsOfPublishedCampaigns(t *testing.T) {
	text, err := os.ReadFile("../docs/results/campaigns/measured.jsonl")
	require.NoError(t, err)
	type row struct {
		Campaign           string
		Settings, Baseline knobs.Settings
		At                 []struct {
			Position  int
			Ratio     float64
			Predicted float64 `json:"predicted_us"`
			Baseline  float64 `json:"predicted_baseline_us"`
		}
	}
	of, paths := map[string][]row{}, map[string]bool{}
	for line := range bytes.Lines(text) {
		var r row
		require.NoError(t, json.Unmarshal(line, &r))
		of[r.Campaign] = append(of[r.Campaign], r)
		for _, s := range []knobs.Settings{r.Settings, r.Baseline} {
			for path := range s {
				paths[path] = true
			}
		}
	}
	space := &Space{}
	for path := range paths {
		space.Knobs = append(space.Knobs, Knob{Path: path})
	}
	for name, want := range map[string][2]float64{
		"qwen3-0.6b-cold-h200":          {0.0519, 0.0381},
		"qwen3-0.6b-far-h200":           {0.0315, 0.0261},
		"llama-3.2-1b-far-h200":         {0.0248, 0.0242},
		"qwen3-0.6b-2048-h200":          {0.0184, 0.0199},
		"pycoder-5m-h200":               {0.0775, 0.0503},
		"smollm2-135m-h200":             {0.0238, 0.0232},
		"qwen2.5-1.5b-far-earlier-h200": {0.0364, 0.0238},
		"qwen3-0.6b-far-h100":           {0.0288, 0.0276},
		"llama-3.2-1b-far-h100":         {0.0263, 0.0139},
	} {
		s := NewState(&Campaign{Space: space})
		var without, with, n float64
		seen := 0
		for _, r := range of[name] {
			v := &Verdict{Timing: &Timing{},
				Subject: Subject{Settings: r.Settings, Baseline: r.Baseline, Device: DeviceCUDA}}
			off, m := 0.0, 0.0
			for _, a := range r.At {
				if a.Predicted > 0 {
					v.At = append(v.At, At{Ratio: Interval{Mean: a.Ratio},
						Predicted: &Predicted{a.Predicted, a.Baseline}})
					off, m = off+math.Log(a.Ratio*a.Baseline/a.Predicted), m+1
				}
			}
			if m == 0 || len(s.apart(r.Settings, r.Baseline)) == 0 {
				continue
			}
			if seen++; seen > 8 {
				e := off/m - s.correction(r.Settings, r.Baseline)
				without, with, n = without+off*off/m/m, with+e*e, n+1
			}
			s.learn(v)
		}
		got := [2]float64{math.Sqrt(without / n), math.Sqrt(with / n)}
		t.Logf("%s: %d verdicts: %.4f without, %.4f with", name, seen, got[0], got[1])
		require.InDeltaSlice(t, want[:], got[:], 0.0001, name)
	}
}
