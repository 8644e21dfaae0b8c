package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Programs of whole models go right in an order, and wrong where a stage does not wait for what it reads; the script
// has fewer tasks than a layer. The large ones take half a minute of a processor: AMKC_LONG asks for them.
func TestSimulateModels(t *testing.T) {
	models := []string{"../../testdata/models/zoo/llama-gqa"}
	if os.Getenv("AMKC_LONG") != "" {
		models = append(models, "../../testdata/configs/smollm2-135m", "../../testdata/configs/llama-3.1-8b")
	}
	wait := regexp.MustCompile(`  wait L\{i\}\.act >= \d+\n`)
	for _, model := range models {
		code, text, stderr := amkc("dump", model, "--target", "h200")
		require.Zero(t, code, stderr)
		right, wrong := filepath.Join(t.TempDir(), "right.amk"), filepath.Join(t.TempDir(), "wrong.amk")
		require.NoError(t, os.WriteFile(right, []byte(text), 0o600))
		require.Regexp(t, wait, text)
		require.NoError(t, os.WriteFile(wrong, []byte(wait.ReplaceAllString(text, "")), 0o600))

		code, text, stderr = amkc("simulate", right, "--orders", "1", "--position", "3", "--time", "600", "--json")
		require.Zero(t, code, stderr)
		var result simulated
		require.NoError(t, json.Unmarshal([]byte(text), &result))
		require.Equal(t, 2, result.Orders, "of one step, and of two in a row")
		require.Greater(t, result.Tasks, 100)

		code, text, stderr = amkc("simulate", wrong, "--orders", "1", "--position", "3", "--time", "600", "--json")
		require.Equal(t, 1, code, stderr)
		result = simulated{}
		require.NoError(t, json.Unmarshal([]byte(text), &result))
		require.Regexp(t, `^task L\d+\.down\.`, result.Hazard.Where)
		steps := result.Hazard.Script.Steps
		require.Contains(t, result.Hazard.Where, steps[len(steps)-1].Task)
		require.Less(t, result.Hazard.Script.Tasks(), 1000)
	}
}
