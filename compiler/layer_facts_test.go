package compiler

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
	"amkc/refvm"
	"amkc/validate"
	"amkc/validate/kernel"
)

// differ makes the third of four layers one with fewer and larger heads, which rotate by frequencies of their own, and
// with another activation. Its matrices stay as they are.
func differ(t *testing.T, g *ir.Graph) {
	facts := make([]ir.LayerFacts, g.Model.Layers)
	for i := range facts {
		facts[i] = *g.Model.Of(i)
	}
	require.Equal(t, ir.LayerFacts{Intermediate: 56, Heads: 6, KVHeads: 3, HeadDim: 12}, facts[2])
	facts[2].Heads, facts[2].KVHeads, facts[2].HeadDim = 4, 2, 18
	g.Model.SetFacts(facts)
	rope := g.Rope
	rope.InvFreq = make([]float32, 9)
	for j := range rope.InvFreq {
		rope.InvFreq[j] = float32(math.Pow(10000, -float64(j)/9))
	}
	kind := &g.Kinds[g.Layers[2]]
	kind.Rope = &rope
	for i := range kind.Nodes {
		if kind.Nodes[i].Op == "silu_mul" {
			kind.Nodes[i].Op = "gelu_tanh_mul"
		}
	}
}

// Layers may differ in heads, in the size of heads, in the width of the MLP and in its activation: the passes keep what
// such a model computes, in steps and in passes of several tokens, and every program is proved and read back out of
// what is emitted.
func TestLayersThatDiffer(t *testing.T) {
	ids := []int{5, 211, 17, 3, 99, 42}
	run := func(p *ir.Program, w refvm.Weights) (all [][]float32) {
		s, err := refvm.NewSession(p, w, refvm.Options{Round: refvm.Device})
		require.NoError(t, err)
		for _, id := range ids {
			logits, _, err := s.Step(id)
			require.NoError(t, err)
			all = append(all, slices.Clone(logits))
		}
		return all
	}
	for _, pass := range []ir.Pass{{}, {Sequences: 2, Rows: 2}, {Rows: 3}} {
		from := 4
		if pass.NumSequences() > 1 { // each may be at any position
			from = 0
		}
		var lowered *ir.Program
		l, err := RunPasses(Options{Model: "../testdata/models/zoo/llama-layer-heads", Target: ir.ArchTarget(90, 6),
			MaxSeq: 48, Pass: pass, DType: new(ir.F32), Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{
				"attention": {"split_from": from, "max_splits": 2}}},
			After: func(_ int, pass *passes.Pass, s *passes.State, _ time.Duration) error {
				switch pass.Name {
				case "import":
					differ(t, s.Graph)
				case "lower":
					copied, err := ir.Parse(ir.Print(s.Program), "lowered.amk")
					require.NoError(t, err)
					lowered = copied
				}
				if s.Program != nil {
					require.NoError(t, ir.Check(s.Program).Err(), pass.Name)
				}
				return nil
			}})
		require.NoError(t, err)
		defer l.Close()
		require.Len(t, l.Program.Model.Kinds, 3)
		for _, backend := range []validate.Backend{validate.Reference, kernel.Backend} {
			require.NoError(t, validate.ProgramFor(backend, l.Program).Diags.Err())
		}
		readBackOf(t, l.Program)
		if pass.NumTokens() > 1 {
			continue
		}
		require.Greater(t, len(l.Program.Variants), 1, "attention is split in some")
		want, got := run(lowered, l.Weights), run(l.Program, l.Weights)
		for i := range want {
			require.InDeltaSlice(t, want[i], got[i], 1e-4, "at position %d", i)
		}
		require.Greater(t, slices.Max(want[5]), float32(1))
	}
}
