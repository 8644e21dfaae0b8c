package compiler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/refvm"
	"amkc/text/sampling"
)

// A scheduled program draws what the sampler draws from its logits, by the settings of each sequence: with passes of
// one token, of rows and of sequences, at any positions.
func TestProgramsDraw(t *testing.T) {
	c := &passCases[2]
	for _, pass := range []ir.Pass{{}, ir.PassOf(1, 4), ir.PassOf(3, 1), ir.PassOf(2, 2)} {
		t.Run(fmt.Sprint(pass), func(t *testing.T) {
			l := c.lower(t, pass)
			session, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{})
			require.NoError(t, err)
			require.Error(t, session.Sample(make([]refvm.Settings, pass.NumSequences()+1)))
			rng, vocab, drawn := rand.New(rand.NewPCG(6, 6)), l.Program.Model.Vocab, 0
			for at := 0; at+pass.NumRows() <= 20; at += pass.NumRows() {
				settings, positions := make([]refvm.Settings, pass.NumSequences()), make([]int, pass.NumSequences())
				for s := range settings {
					positions[s] = at
					if rng.IntN(3) > 0 {
						settings[s] = refvm.Settings{Temperature: 0.2 + 3*rng.Float64(), Seed: rng.Uint64()}
					}
				}
				tokens := make([]int, pass.NumTokens())
				for i := range tokens {
					tokens[i] = rng.IntN(vocab)
				}
				require.NoError(t, session.Sample(settings))
				logits, next, err := session.Pass(positions, tokens)
				require.NoError(t, err)
				for i, id := range next {
					s := i / pass.NumRows()
					o := sampling.Greedy()
					o.Temperature, o.Seed = settings[s].Temperature, settings[s].Seed
					sampler, err := sampling.New(o, vocab, make([]int, at+i%pass.NumRows()+1))
					require.NoError(t, err)
					want, err := sampler.Next(logits[i*vocab:][:vocab], nil)
					require.NoError(t, err)
					require.Equal(t, want.ID, id, "token %d of the pass at %d", i, at)
					if o.Temperature == 0 {
						continue
					}
					sampler, err = sampling.New(sampling.Greedy(), vocab, []int{0})
					require.NoError(t, err)
					if largest, err := sampler.Next(logits[i*vocab:][:vocab], nil); err == nil && largest.ID != id {
						drawn++
					}
				}
			}
			require.Positive(t, drawn, "no draw differs from the largest logit")
		})
	}
}
