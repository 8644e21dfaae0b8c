package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/text/sampling"
)

// sampledResult is what run prints where tokens are not just the most probable ones.
type sampledResult struct {
	IDs      []int             `json:"ids"`
	Stopped  string            `json:"stopped"`
	Sampling string            `json:"sampling"`
	Seed     *uint64           `json:"seed"`
	LogProbs []sampling.Choice `json:"logprobs"`
}

func sampled(t *testing.T, dir string, args ...string) (r sampledResult) {
	t.Helper()
	args = append([]string{"run", "--ids", "5,6,7", "--json", "--max-tokens", "12"}, args...)
	code, out, stderr := run(t, dir, "", args...)
	require.Zero(t, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}

func TestRunSamples(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	hosttest.Write(t, dir, host.GenConfigFile,
		[]byte(`{"do_sample": true, "temperature": 0.6, "top_k": 20, "eos_token_id": []}`))
	greedy := sampled(t, dir)
	require.Len(t, greedy.IDs, 12)
	require.Empty(t, greedy.Sampling)
	require.Nil(t, greedy.Seed)

	here := sampled(t, dir, "--logprobs", "3")
	require.Equal(t, greedy.IDs, here.IDs, "the host chooses the largest logit as the kernel does")
	require.Equal(t, "greedy", here.Sampling)
	require.Nil(t, here.Seed)
	require.Len(t, here.LogProbs, 12)
	for i, c := range here.LogProbs {
		require.Equal(t, here.IDs[i], c.ID)
		require.Len(t, c.Top, 3)
		require.Equal(t, sampling.LogProb{ID: c.ID, LogProb: c.LogProb}, c.Top[0])
	}

	drawn := sampled(t, dir, "--sample", "--seed", "3")
	require.Equal(t, "temperature 0.6, top-k 20, seed 3", drawn.Sampling, "as the model says")
	require.EqualValues(t, 3, *drawn.Seed)
	require.Empty(t, drawn.LogProbs)
	require.Equal(t, drawn, sampled(t, dir, "--sample", "--seed", "3"))
	require.NotEqual(t, drawn.IDs, sampled(t, dir, "--sample", "--seed", "4").IDs)
	require.NotEqual(t, drawn.IDs, greedy.IDs)

	unsaid := sampled(t, dir, "--sample", "--top-k", "0")
	require.Equal(t, unsaid.IDs, sampled(t, dir, "--temperature", "0.6", "--seed", jsonOf(t, unsaid.Seed)).IDs,
		"the seed that was made up gives the same again")

	for _, args := range []string{"--temperature 1 --seed 4", "--temperature 1 --top-p 0.9 --min-p 0.1 --seed 7",
		"--presence-penalty 1 --repetition-penalty 1.5"} {
		by := strings.Fields(args)
		require.Equal(t, sampled(t, dir, append(by, "--logprobs", "0")...).IDs, sampled(t, dir, by...).IDs,
			"%s: the host chooses what the kernel does", args)
	}

	never := sampled(t, dir, "--logit-bias", jsonOf(t, greedy.IDs[0])+":-inf")
	require.NotEqual(t, greedy.IDs[0], never.IDs[0])
	require.Equal(t, "logit-bias of 1, greedy", never.Sampling)
}

func jsonOf(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestSamplingThatCannotBe(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	code, _, stderr := run(t, dir, "", "run", "--ids", "1", "--max-tokens", "200", "--temperature", "1")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "recompile with --max-seq 200")
	code, _, stderr = run(t, dir, "", "run", "--ids", "1", "--logprobs", "4097", "--json")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--logprobs is 4097; want at most 4096, as many as the model has tokens")
	hosttest.Write(t, dir, host.GenConfigFile, []byte(`{"num_beams": 4}`))
	code, _, stderr = run(t, dir, "", "run", "--ids", "1", "--sample")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "generation_config.json: it cannot be followed: num_beams is 4, which is not supported")
}
