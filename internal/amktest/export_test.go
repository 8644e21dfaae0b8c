package amktest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/interchange"
	"amkc/ir"
	"amkc/passes"
	"amkc/refvm"
)

const models = "../../testdata/models/"

// lowered runs the passes up to lower over a model.
func lowered(t testing.TB, model string) (*ir.Program, *passes.Weights) {
	c, err := checkpoint.Open(model)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	s := &passes.State{Target: ir.FindTarget("h100"),
		Source: importers.Source{Name: filepath.Base(model), Config: c.Config, Weights: c}}
	require.NoError(t, passes.Import.Run(s))
	require.NoError(t, passes.Lower.Run(s))
	return s.Program, passes.NewWeights(c, s.Graph, s.Matrices)
}

// exported is a program that went to the profile and through its file form.
func exported(t testing.TB, p *ir.Program, pos int) *interchange.Program {
	out, diags := interchange.ToAMK(p, pos, 10000)
	require.Empty(t, diags)
	again, diags := interchange.Parse(out.Marshal(), "exported.json")
	require.Empty(t, diags)
	return again
}

// plainModels have a default rotary embedding of base 10000.
var plainModels = []string{"pycoder-5m", "zoo/llama-gqa", "zoo/llama-mha-tied-bf16", "zoo/llama-odd-dims",
	"zoo/llama-sharded-fp16"}

func TestExportsAreProved(t *testing.T) {
	for _, name := range plainModels {
		t.Run(filepath.Base(name), func(t *testing.T) {
			p, _ := lowered(t, models+name)
			for _, pos := range []int{0, 1, 37, p.Model.MaxSeq - 1} {
				require.Empty(t, verdict(exported(t, p, pos)))
			}
		})
	}
}

// An exported program decodes as the native one does. Each position is a program of its own; the caches go from one to
// the next.
func TestExportsRun(t *testing.T) {
	const steps = 6
	for _, name := range plainModels {
		t.Run(filepath.Base(name), func(t *testing.T) {
			p, weights := lowered(t, models+name)
			session, err := refvm.NewSession(p, weights, refvm.Options{Workers: 2})
			require.NoError(t, err)
			caches := map[string][]float32{}
			token := 3
			for pos := range steps {
				logits, next, err := session.Step(token)
				require.NoError(t, err)
				flat, diags := exported(t, p, pos).Flatten()
				require.Empty(t, diags)
				vm, err := refvm.New(flat, weights, refvm.Options{Workers: 2, Record: true})
				require.NoError(t, err)
				for name, values := range caches {
					require.NoError(t, vm.Write(name, values))
				}
				require.NoError(t, vm.Step(pos, token, refvm.Order{Kind: refvm.Random, Seed: uint64(pos)}))
				want := make([]float64, len(logits))
				for i, x := range logits {
					want[i] = float64(x)
				}
				requireClose(t, want, vm.Logits(), 1e-5, "position %d", pos)
				require.Equal(t, next, vm.Next())
				for i := range flat.Buffers {
					if b := &flat.Buffers[i]; b.Kind == ir.KVCache {
						caches[b.Name], err = vm.Read(b.Name)
						require.NoError(t, err)
					}
				}
				token = next
			}
			require.Len(t, caches, 2*p.Model.Layers)
		})
	}
}
