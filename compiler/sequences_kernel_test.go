package compiler

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// What is emitted for a pass of several sequences is read back as the program that was proved, whether attention is
// split or not, and says nothing that the program of one token and the number of sequences do not. Every model is
// asked with every way to split and every number of sequences, but only AMKC_LONG asks for all pairs of the two.
func TestSequencesOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for i, model := range []string{"pycoder-5m", "zoo/gemma-tied", "zoo/glm-half", "zoo/granite-scaled",
		"zoo/internlm3-biases", "zoo/llama-rope-yarn", "zoo/phi3-long", "zoo/qwen3-qknorm",
		"zoo/mistral-window", "zoo/mistral-wide-group", "zoo/cohere-head-norms", "zoo/gemma2-split-k",
		"zoo/gemma3-tied", "zoo/glm4-half", "zoo/olmo2-plain", "zoo/gpt2", "zoo/opt-tied", "zoo/arcee-biases"} {
		for j, attention := range []map[string]int{nil, {"max_splits": 1}, {"split_from": 0, "max_splits": 3}} {
			sizes := []int{2, 5, 8}
			if !long() {
				sizes = sizes[(i+j)%len(sizes):][:1]
			}
			for _, sequences := range sizes {
				t.Run(fmt.Sprint(model, attention, sequences), func(t *testing.T) {
					bf16 := ir.BF16
					l, err := RunPasses(Options{Model: filepath.Join(root, "models", model), Name: "m", DType: &bf16,
						Target: ir.FindTarget("h200"), Passes: []ir.Pass{{Sequences: sequences}},
						ConfigOnly: true, Check: true,
						Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": attention}}})
					require.NoError(t, err)
					defer l.Close()
					require.Len(t, l.Passes, 1)
					p := l.Passes[0]
					say := func(constant string, n int) string { return fmt.Sprintf("%s = %d;", constant, n) }
					requireReadBack(t, l, p, map[string][2]string{
						"rows":      {say("kSequences", sequences), say("kSequences", 1)},
						"fewer":     {say("kSequences", sequences), say("kSequences", sequences-1)},
						"tokens":    {say("kTokens", sequences), say("kTokens", sequences%8+1)},
						"the pages": {"kTraceStride = ", "kTraceStride = 1"},
					})
				})
			}
		}
	}
}
