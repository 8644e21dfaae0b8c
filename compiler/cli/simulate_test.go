package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/simulate"
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

// When the time is over, or Ctrl-C comes, what was found is shown with the order that there is, which says so.
func TestSimulateStopsShortening(t *testing.T) {
	code, text, stderr := amkc("dump", "../../testdata/models/zoo/llama-gqa", "--target", "h200")
	require.Zero(t, code, stderr)
	wrong := filepath.Join(t.TempDir(), "wrong.amk")
	text = regexp.MustCompile(`  wait L\{i\}\.act >= \d+\n`).ReplaceAllString(text, "")
	require.NoError(t, os.WriteFile(wrong, []byte(text), 0o600))
	var stdout bytes.Buffer
	f, c := &simulateFlags{positions: [][]int{{3}}}, &call{args: []string{wrong}, stdout: &stdout}
	p, err := c.readProgram(wrong)
	require.NoError(t, err)
	v, err := f.judge(c, p, simulate.Effort{Orders: 1, Positions: 1, At: f.positions, Seed: 1})
	require.NoError(t, err)
	require.NotNil(t, v.Hazard)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result := &simulated{}
	require.Error(t, f.wrong(ctx, c, result, v.Hazard))
	require.True(t, result.Stopped)
	require.Equal(t, v.Hazard.Script(), result.Hazard.Script, "nothing was taken out")
	require.Contains(t, stdout.String(), ", which may be more than it takes, as the time was over:\n")

	stdout.Reset()
	require.Error(t, f.wrong(context.Background(), c, result, v.Hazard))
	require.False(t, result.Stopped)
	found := v.Hazard.Script()
	require.Less(t, result.Hazard.Script.Tasks(), found.Tasks())
	require.NotContains(t, stdout.String(), "more than it takes")
}

// A program of the AMK profile is refused for what its flat form does not hold too, as internal/soundness judges it.
func TestSimulateProfile(t *testing.T) {
	const toy = "../../testdata/amk_ir/toy_f32_rtx5090/program.json"
	data, err := os.ReadFile(toy)
	require.NoError(t, err)
	p, diags := interchange.Parse(data, toy)
	require.NoError(t, diags.Err())
	p.Pages = &interchange.Pages{BufferToPage: map[int]int{},
		Pages: []interchange.Page{{Space: ir.SMEM, NBytes: 10_000_000}}}
	large := filepath.Join(t.TempDir(), "large.json")
	require.NoError(t, os.WriteFile(large, p.Marshal(), 0o600))
	code, stdout, stderr := amkc("simulate", large)
	require.Equal(t, 1, code)
	require.Equal(t, large+": goes wrong whatever the position in every order\n", stdout)
	require.Equal(t, "page 0: error: takes 10000000 bytes of shared memory, and 101376 of the target's 101376 are "+
		"left; want no more than those [AMK3706]\n", stderr)
}
