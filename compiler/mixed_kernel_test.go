package compiler

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
)

// What is emitted for passes of several rows of each of several sequences is read back as the program that was proved,
// and says nothing that the program of one token and the numbers of the pass do not. The models take the passes and the
// ways to split in turn; AMKC_LONG asks for all of each.
func TestRowsOfSequencesOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	integers, full := ir.I8, ir.F32
	for i, c := range []struct {
		model, weights string
		cache, dtype   *ir.DType
	}{
		{model: "pycoder-5m"}, {model: "zoo/gpt2"}, {model: "zoo/opt-tied"}, {model: "zoo/qwen3-qknorm"},
		{model: "zoo/mistral-window"}, {model: "zoo/mistral-wide-group"}, {model: "zoo/olmo2-plain"},
		{model: "zoo/gemma2-split-k"}, {model: "zoo/gemma3-tied", cache: &integers}, {model: "zoo/cohere-head-norms"},
		{model: "zoo/exaone4-windows"}, {model: "zoo/phi3-long", weights: "fp8,down_proj=int8:g32:asym"},
		{model: "pycoder-5m", weights: "int4", cache: &integers}, {model: "zoo/glm4-half"},
		{model: "zoo/llama-gqa", dtype: &full}, {model: "zoo/gpt2", dtype: &full, cache: &integers},
	} {
		attentions, sizes := []map[string]int{nil, {"max_splits": 1}, {"split_from": 0, "max_splits": 3}},
			[]ir.Pass{ir.PassOf(2, 4), ir.PassOf(4, 2), ir.PassOf(2, 2), ir.PassOf(2, 3)}
		for j, attention := range attentions {
			for k, pass := range sizes {
				if !long() && (j != i%len(attentions) || k != i%len(sizes)) {
					continue
				}
				t.Run(fmt.Sprint(c.model, c.weights, attention, pass), func(t *testing.T) {
					o := Options{Model: filepath.Join(root, "models", c.model), Name: "m", DType: c.dtype,
						Cache: c.cache, Target: ir.FindTarget("h200"),
						Passes: []ir.Pass{{Sequences: pass.Sequences}, pass}, ConfigOnly: true, Check: true,
						Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": attention}}}
					if c.weights != "" {
						var err error
						o.Formats, err = passes.ParseWeightFormats(c.weights)
						require.NoError(t, err)
					}
					l, err := RunPasses(o)
					require.NoError(t, err)
					defer l.Close()
					require.Len(t, l.Passes, 2)
					p := l.Passes[1]
					require.Equal(t, pass, p.Pass)
					say := func(constant string, n int) string { return fmt.Sprintf("%s = %d;", constant, n) }
					requireReadBack(t, l, p, map[string][2]string{
						"rows":      {say("kSequences", pass.Sequences), say("kSequences", 1)},
						"sequences": {say("kSequences", pass.Sequences), say("kSequences", pass.NumTokens())},
						"no share":  {say("kSequences", pass.Sequences), say("kSequences", 5)},
						"tokens":    {say("kTokens", pass.NumTokens()), say("kTokens", 2*pass.NumTokens()%12)},
					})
				})
			}
		}
	}
}
