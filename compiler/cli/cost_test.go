package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A prompt is predicted alone and alongside others, whole and with a beginning in the cache; of one that is all in the
// cache but its last token, no part is read.
func TestCostOfPrompts(t *testing.T) {
	const model = "../../testdata/models/pycoder-5m"
	code, out, stderr := amkc("cost", model, "--prompt", "1000", "--target", "h200")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "prompt of 1000 tokens: ")
	require.Regexp(t, `alongside other answers \(serve --pause 50\): 1 part of up to 999 tokens, between which they `+
		`wait up to \d+\.\d ms; \d+\.\d ms to the first token`, out)
	code, out, stderr = amkc("cost", model, "--prompt", "1000", "--reuse", "900", "--target", "h200")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "prompt of 1000 tokens, 900 of them in the cache: predicted, never measured")
	require.Contains(t, out, "1 part of up to 99 tokens")

	type prompts struct {
		Prompts []struct {
			Cached, Passes int
			Alongside      *struct {
				Parts int
				Pause float64 `json:"pause_ms"`
			}
		}
	}
	predict := func(args ...string) (r prompts) {
		t.Helper()
		code, out, stderr := amkc(append([]string{"cost", model, "--target", "h200", "--json"}, args...)...)
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return r
	}
	p := predict("--prompt", "1000,901", "--reuse", "900").Prompts
	require.Len(t, p, 2)
	require.Equal(t, []int{900, 1}, []int{p[0].Cached, p[0].Passes})
	require.Equal(t, 1, p[0].Alongside.Parts)
	require.EqualValues(t, 50, p[0].Alongside.Pause)
	require.Equal(t, []int{900, 0}, []int{p[1].Cached, p[1].Passes})
	require.Nil(t, p[1].Alongside)

	code, _, stderr = amkc("cost", model, "--reuse", "5")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "want --prompt N with it")
	code, _, stderr = amkc("cost", model, "--prompt", "5", "--reuse", "5", "--target", "h200")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "want 0 to 4, as the last one is decoded")
}
