package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// How many tasks and counters docs/experiments.md says that the schedules of families have is what they have.
func TestPublishedTasks(t *testing.T) {
	text, err := os.ReadFile("../../docs/results/experiments.json")
	require.NoError(t, err)
	var results struct {
		Rows []struct {
			ID       string
			Tasks    int `json:"h200_tasks"`
			Counters int `json:"h200_counters"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &results))
	models := map[string]string{
		"families/pycoder-5m":    "../../testdata/models/pycoder-5m",
		"families/llama-gqa":     "../../testdata/models/zoo/llama-gqa",
		"families/gemma2-tied":   "../../testdata/models/zoo/gemma2-tied",
		"families/falcon-groups": "../../testdata/models/zoo/falcon-groups",
	}
	file := filepath.Join(t.TempDir(), "program.amk")
	seen := 0
	for _, row := range results.Rows {
		model, ok := models[row.ID]
		if !ok {
			continue
		}
		seen++
		code, program, stderr := amkc("dump", model, "--target", "h200")
		require.Zero(t, code, stderr)
		require.NoError(t, os.WriteFile(file, []byte(program), 0o644))
		code, proof, stderr := amkc("validate", file, "--json")
		require.Zero(t, code, stderr)
		var proved struct {
			Stats struct{ Tasks, Counters int }
		}
		require.NoError(t, json.Unmarshal([]byte(proof), &proved))
		require.Equal(t, [2]int{row.Tasks, row.Counters}, [2]int{proved.Stats.Tasks, proved.Stats.Counters},
			"%s: python3 bench/experiments.py --section families --again", row.ID)
	}
	require.Len(t, models, seen)
}
