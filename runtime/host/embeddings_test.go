package host_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// Tokens and embeddings come in any mixture and in whatever parts, through passes over prompts, passes of several rows
// and single steps: logits, hidden states and what is chosen are those of the same sequence one by one.
func TestEmbeddingsInThePlaceOfTokens(t *testing.T) {
	const hidden, vocab = 64, 4096
	for _, build := range [][]int{{64}, {16, 8}, {100, 3}} {
		t.Run(fmt.Sprint(build), func(t *testing.T) {
			s, err := openPrompts(t, "", "", build[0], build[1:]...)
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(7, uint64(build[0])))
			for range 30 {
				s.Reset()
				var in host.Input
				var seen []int // as the fake kernels take them
				for range 1 + rng.IntN(128) {
					if rng.IntN(3) > 0 {
						in.IDs = append(in.IDs, rng.IntN(vocab))
						seen = append(seen, in.IDs[len(in.IDs)-1])
						continue
					}
					row := make([]float32, hidden)
					for i := range row {
						row[i] = rng.Float32()
					}
					in.IDs, in.Embeddings = append(in.IDs, host.Embedding), append(in.Embeddings, row...)
					seen = append(seen, hosttest.TokenOf(row))
				}
				for at, rows := 0, 0; at < len(in.IDs); {
					n := 1 + rng.IntN(len(in.IDs)-at)
					part := host.Input{IDs: in.IDs[at : at+n]}
					first := rows
					for _, id := range part.IDs {
						if id == host.Embedding {
							rows += hidden
						}
					}
					part.Embeddings = in.Embeddings[first:rows]
					var want host.Outputs
					logits, states := at, at
					if rng.IntN(2) == 0 {
						want.Logits = func(position int, l []float32) error {
							require.Equal(t, logits, position)
							_, chosen := hosttest.Mirror(seen[:position+1])
							require.Equal(t, chosen, slices.Index(l, slices.Max(l)))
							logits++
							return nil
						}
					}
					if rng.IntN(2) == 0 {
						want.Hidden = func(position int, h []float32) error {
							require.Equal(t, states, position)
							hash, _ := hosttest.Mirror(seen[:position+1])
							require.Equal(t, hosttest.Hidden(hash), h)
							states++
							return nil
						}
					}
					next, err := s.Decode(t.Context(), part, want)
					require.NoError(t, err)
					_, chosen := hosttest.Mirror(seen[:at+n])
					require.Equal(t, chosen, next)
					at += n
					require.Equal(t, at, s.Position())
					require.True(t, want.Logits == nil || logits == at)
					require.True(t, want.Hidden == nil || states == at)
				}
			}
		})
	}
}

func TestInputsThatAreRefused(t *testing.T) {
	s := open(t, "")
	for what, in := range map[string]host.Input{
		"no tokens to decode":                 {},
		"0 numbers were given for embeddings": {IDs: []int{1, host.Embedding}},
		"want 64, 64 for each":                {IDs: []int{host.Embedding}, Embeddings: make([]float32, 63)},
		"at 0 positions; want 0, 64 for each": {IDs: []int{1}, Embeddings: make([]float32, 64)},
		"the model has ids 0 to 4095":         {IDs: []int{4096}},
		"positions 0 to 128 were asked for":   {IDs: make([]int, 129)},
	} {
		_, err := s.Decode(t.Context(), in, host.Outputs{})
		require.ErrorContains(t, err, what)
	}
	require.Zero(t, s.Position())
}
