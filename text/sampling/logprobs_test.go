package sampling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkScore has what the log-probabilities of a token cost, with the vocabulary of Llama 3.
func BenchmarkScore(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 128256)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
	}
	for _, wanted := range []int{0, 5, 20} {
		b.Run(fmt.Sprint(wanted), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := Score(logits, 7, wanted, 0)
				require.NoError(b, err)
			}
		})
	}
}

// A score has what sorting all tokens gives, ties in the order of their ids. A token which nobody has chosen may be
// impossible, and one that somebody has may not.
func TestScore(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, wanted := range []int{0, 1, 2, 7, 60} {
		for range 200 {
			logits := make([]float32, 50)
			var all []candidate
			for i := range logits {
				if logits[i] = float32(rng.IntN(9)); rng.IntN(5) == 0 {
					logits[i] = float32(math.Inf(-1))
				} else {
					all = append(all, candidate{id: i, x: float64(logits[i])})
				}
			}
			slices.SortFunc(all, likelier)
			norm := 0.0
			for _, c := range all {
				norm += math.Exp(c.x)
			}
			norm = math.Log(norm)
			id := rng.IntN(len(logits))
			c, err := Given(logits, id, wanted, 0)
			require.NoError(t, err)
			require.Equal(t, id, c.ID)
			require.Len(t, c.Top, min(wanted, len(all)))
			for i, top := range c.Top {
				require.Equal(t, all[i].id, top.ID)
				require.InDelta(t, all[i].x-norm, top.LogProb, 1e-12)
			}
			again, err := Score(logits, id, wanted, 4)
			if math.IsInf(float64(logits[id]), -1) {
				require.Equal(t, math.Inf(-1), c.LogProb)
				require.EqualError(t, err, fmt.Sprintf("position 4: token %d was chosen, and is impossible", id))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c, again)
			require.InDelta(t, float64(logits[id])-norm, c.LogProb, 1e-12)
		}
	}
	none := []float32{float32(math.Inf(-1)), float32(math.Inf(-1))}
	c, err := Given(none, 1, 2, 0)
	require.NoError(t, err)
	require.Equal(t, Choice{ID: 1, LogProb: math.Inf(-1)}, c)
	_, err = Given(none, 2, 2, 0)
	require.EqualError(t, err, "position 0: there is no token 2")
	_, err = Given([]float32{float32(math.NaN())}, 0, 2, 0)
	require.Error(t, err)
}
