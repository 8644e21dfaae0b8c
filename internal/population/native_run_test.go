package population

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/refvm"
	"amkc/validate"
)

// noise supplies random weights.
type noise struct{}

func (noise) Floats(b *ir.Buffer, i int) ([]float32, error) {
	r := rand.New(rand.NewPCG(uint64(len(b.Name)), uint64(i)))
	out := make([]float32, b.Numel())
	for k := range out {
		out[k] = r.Float32()*2 - 1
	}
	return out, nil
}

// decode runs every position of a program, in one order, and returns all logits bit by bit.
func decode(t *testing.T, c *Case, order refvm.Order) []uint32 {
	s, err := refvm.NewSession(c.Program, noise{},
		refvm.Options{Workers: 1, Record: true}) // each step starts with NaN in all activations
	require.NoError(t, err, c.Name)
	s.Order = order
	var bits []uint32
	for token := range c.Program.Model.MaxSeq {
		logits, _, err := s.Step(token % c.Program.Model.Vocab)
		require.NoError(t, err, c.Name)
		for _, v := range logits {
			require.False(t, math.IsNaN(float64(v)), "%s at position %d", c.Name, token)
			bits = append(bits, math.Float32bits(v))
		}
	}
	return bits
}

// The programs are real ones: what validate accepts runs, defines all it reads, and comes out the same in other orders.
func TestNativeRuns(t *testing.T) { requireRuns(t, Native, draws(300), draws(100)) }

// requireRuns decodes those of n programs that are accepted, of which there must be more than enough.
func requireRuns(t *testing.T, program func(seed uint64) Case, n, enough int) {
	ran := 0
	for seed := range uint64(n) {
		c := program(seed)
		if !validate.Program(c.Program).OK {
			continue
		}
		ran++
		want := decode(t, &c, refvm.Order{Kind: refvm.InOrder})
		for _, order := range []refvm.Order{{Kind: refvm.Latest}, {Kind: refvm.Random, Seed: seed},
			{Kind: refvm.Starve, SM: int(seed % 2)}} {
			require.Equal(t, want, decode(t, &c, order), c.Name)
		}
	}
	require.Greater(t, ran, enough)
}
