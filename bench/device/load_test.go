package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

// A prompt arrives while others decode, a conversation has a second turn, and requests are mixed; texts are what they
// are alone.
func TestLoad(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "max_seq=1024 end0=1024 slow_us=100", func(f *host.Facts) {
		f.Model.MaxSeq, f.Variants[0].Hi, f.Prompt = 1024, 1023, 512
		hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: 4})
	})
	code, out, stderr := device(t, dir, "load", "--others", "3", "--context", "4", "--prompt", "400", "--tokens", "6",
		"--conversation", "50", "--requests", "9", "--rounds", "2", "--pause", "2")
	require.Zero(t, code, stderr+out)
	var r loadResult
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.True(t, r.Passed)
	require.Equal(t, []int{4, 3, 4, 400, 2, 0}, []int{r.Sequences, r.Others, r.Context, r.Prompt, r.Rounds, r.Part})
	require.EqualValues(t, 2, r.Pause)
	for _, phase := range []loadPhase{r.Before, r.During, r.After} {
		require.Positive(t, phase.PerSecond)
		require.GreaterOrEqual(t, phase.Between.P99, phase.Between.P50)
		require.GreaterOrEqual(t, phase.Pause.P50, phase.Between.P50)
		require.GreaterOrEqual(t, phase.Longest, phase.Pause.P99)
	}
	require.GreaterOrEqual(t, r.Before.Tokens, 2*3*6)
	require.GreaterOrEqual(t, r.Parts, 2.)
	require.GreaterOrEqual(t, r.First.P50, r.Alone.P50/2)
	require.Equal(t, []int{50, messageTokens, 49}, []int{r.Turn.Conversation, r.Turn.Message, r.Turn.Cached})
	require.Positive(t, r.Turn.First.P50)
	require.Greater(t, r.Turn.Without.P50, 0.)
	require.Equal(t, 9, r.Mixed.Requests)
	require.Positive(t, r.Mixed.PerSecond)
	require.GreaterOrEqual(t, r.Mixed.Tokens, 9*3)

	code, _, stderr = device(t, dir, "load", "--others", "4")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "4 sequences of 1024 positions; this needs 5 of 8200")
	code, _, stderr = device(t, dir, "load", "--rounds", "0")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "usage: device DIR load")
	code, _, stderr = device(t, dir, "load", "--others", "1", "--prompt", "1000", "--conversation", "9", "--rounds",
		"1", "--context", "900", "--tokens", "10", "--part", "5")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "has reached the last of 1024 positions")

	r = loadResult{}
	r.differs("a text", []int{1}, []int{1})
	require.Empty(t, r.Differing)
	r.differs("a text", []int{1}, []int{2})
	require.Equal(t, []string{"a text: [1], alone [2]"}, r.Differing)
}
