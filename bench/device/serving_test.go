package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host/hosttest"
)

// Engine, server and server with several clients are measured, of one sequence and of several.
func TestServing(t *testing.T) {
	for _, sequences := range []int{1, 4} {
		code, out, stderr := device(t, servable(t, "", sequences), "serving", "--prompt", "20", "--tokens", "40",
			"--rounds", "2", "--clients", "3")
		require.Zero(t, code, stderr)
		var r servingResult
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Equal(t, []int{20, 40, 2, 3, sequences},
			[]int{r.Prompt, r.Tokens, r.Rounds, r.Clients, r.Sequences})
		for _, times := range []serveTimes{r.Engine, r.Server, r.Loaded} {
			for _, p := range []percentiles{times.First, times.Between, times.Token} {
				require.Positive(t, p.P50)
				require.GreaterOrEqual(t, p.P99, p.P50)
			}
		}
		require.InDelta(t, 100*(r.Server.Token.P50/r.Engine.Token.P50-1), r.Cost, 1e-9)
	}
	code, _, stderr := device(t, hosttest.Build(t, "", nil), "serving", "--tokens", "1")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "2 tokens at least")
	code, _, stderr = device(t, servable(t, "", 1), "serving", "--prompt", "100")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "do not fit 128 positions")
	require.Equal(t, percentiles{2, 4}, percentilesOf([]float64{4, 1, 3, 2}))
}
