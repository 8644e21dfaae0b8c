package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// measured is the result of quality.
func measured(t *testing.T, args ...string) qualityResult {
	t.Helper()
	code, stdout, stderr := amkc(append([]string{"quality", "--device", "ref", "--json"}, args...)...)
	require.Equal(t, 0, code, stderr)
	var got qualityResult
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	return got
}

// What quality says is what follows from the logits that logits writes, by the definitions and in another way.
func TestQualityOfLogits(t *testing.T) {
	const window, tokens = 9, 23
	a, b := models+"zoo/llama-gqa", models+"zoo/llama-rope-llama3"
	file := a + "/ref_input_ids.npy"
	got := measured(t, a, "--against", b, "--ids-file", file, "--window", fmt.Sprint(window), "--tokens",
		fmt.Sprint(tokens), "--greedy", "0", "--dtype", "fp32", "--against-dtype", "fp32")

	ids, _ := readNPY[int32](t, file)
	var losses [2]float64
	var divergences []float64
	var same, count, difference, largest float64
	for part := range slices.Chunk(ids[:tokens], window) {
		p, shape := refLogits(t, b, part)
		q, _ := refLogits(t, a, part)
		vocab := shape[1]
		for i, next := range part[1:] {
			p, q := p[i*vocab:][:vocab], q[i*vocab:][:vocab]
			losses[0] += crossEntropy(q, int(next))
			losses[1] += crossEntropy(p, int(next))
			divergence := 0.0
			for id := range vocab {
				pOf, qOf := math.Exp(-crossEntropy(p, id)), math.Exp(-crossEntropy(q, id))
				divergence += pOf * math.Log(pOf/qOf)
				off := math.Abs(float64(p[id]) - float64(q[id]))
				difference += off / float64(vocab)
				largest = max(largest, off)
			}
			divergences = append(divergences, divergence)
			if slices.Index(p, slices.Max(p)) == slices.Index(q, slices.Max(q)) {
				same++
			}
			count++
		}
	}
	require.EqualValues(t, count, got.Tokens)
	require.Equal(t, 3, got.Windows)
	require.InEpsilon(t, math.Exp(losses[0]/count), got.Perplexity.Model, 1e-9)
	require.InEpsilon(t, math.Exp(losses[1]/count), got.Perplexity.Against, 1e-9)
	require.InDelta(t, same/count, got.Agreement, 1e-12)
	require.InEpsilon(t, difference/count, got.Logits.Mean, 1e-9)
	require.Equal(t, largest, got.Logits.Max)
	slices.Sort(divergences)
	n := len(divergences)
	sum := 0.0
	for _, d := range divergences {
		sum += d
	}
	require.InEpsilon(t, sum/count, got.KL.Mean, 1e-9)
	require.InEpsilon(t, divergences[n-1], got.KL.Max, 1e-9)
	at := 0.99 * float64(n-1)
	require.InEpsilon(t, divergences[n-2]+(at-float64(n-2))*(divergences[n-1]-divergences[n-2]), got.KL.P99, 1e-9)
}

// bf16 is off by what its roundings are worth: more than fp16, and little. fp32 rounds nothing.
func TestQualityOfDTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir := models + "zoo/llama-gqa"
	args := []string{dir, "--against", dir, "--against-dtype", "fp32", "--ids-file", dir + "/ref_input_ids.npy",
		"--greedy", "2", "--max-seq", "64"}
	bf16, fp16 := measured(t, append(args, "--dtype", "bf16")...), measured(t, append(args, "--dtype", "fp16")...)
	fp32 := measured(t, append(args, "--dtype", "fp32")...)
	require.Zero(t, fp32.KL)
	require.Zero(t, fp32.Logits)
	require.Equal(t, fp32.Perplexity.Model, fp32.Perplexity.Against)
	require.Positive(t, fp16.KL.Mean)
	require.Less(t, 4*fp16.KL.Mean, bf16.KL.Mean)
	require.Less(t, bf16.KL.Max, 1e-2)
	require.InEpsilon(t, bf16.Perplexity.Against, bf16.Perplexity.Model, 0.02)
}
