package passes

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// testdata/inv_freq.json holds the bits of LlamaRotaryEmbedding(config).inv_freq, from transformers 5.17 with PyTorch
// 2.11 on a CPU.
func TestInvFreqAgainstTransformers(t *testing.T) {
	var cases []struct {
		Theta   float64        `json:"theta"`
		HeadDim int            `json:"head_dim"`
		Scaling map[string]any `json:"scaling"`
		Bits    []string       `json:"bits"`
	}
	text, err := os.ReadFile("testdata/inv_freq.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &cases))
	// What Llama 2 and 3.x, TinyLlama, SmolLM2 and the fixtures use is equal to the bit.
	exact := map[float64][]int{10000: {8, 16, 64, 80, 128}, 100000: {64}, 500000: {16, 64, 128}}
	off, total := 0, 0
	for _, c := range cases {
		got := invFreq(c.Theta, c.HeadDim)
		if c.Scaling != nil {
			at := func(key string) float64 { return c.Scaling[key].(float64) }
			smoothLlama3(got, at("factor"), at("low_freq_factor"), at("high_freq_factor"),
				at("original_max_position_embeddings"))
		}
		require.Len(t, got, len(c.Bits))
		for j, bits := range c.Bits {
			want, err := strconv.ParseUint(bits, 16, 32)
			require.NoError(t, err)
			ulps := int64(math.Float32bits(got[j])) - int64(want)
			if slices.Contains(exact[c.Theta], c.HeadDim) {
				require.Zero(t, ulps, "theta %g head_dim %d scaling %v element %d", c.Theta, c.HeadDim, c.Scaling, j)
			}
			require.LessOrEqual(t, max(ulps, -ulps), int64(1), "theta %g head_dim %d element %d", c.Theta, c.HeadDim, j)
			if ulps != 0 {
				off++
			}
			total++
		}
	}
	require.Less(t, off*100, total, "%d of %d elements differ in the last bit", off, total)
}
