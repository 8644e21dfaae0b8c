package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
)

// What attention of a pass of several sequences hands over and appends, compiled for the CPU, is to the bit what the
// kernel of one token of the same build makes of each by itself: at positions of their own, some of them absent, whose
// caches stay as they are.
func TestAttentionOfSequences(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const sequences = 4
	for _, c := range []struct{ shape, cache, splits, dtype string }{
		{"wide", "", "3", "bf16"}, {"window", "int8", "1", "bf16"}, {"wide", "int8", "1", "bf16"},
		{"window", "", "2", "bf16"}, {"group", "", "2", "bf16"}, {"window", "int8", "3", "fp32"},
		{"odd", "", "2", "fp32"},
	} {
		if (c.shape == "group" || c.splits == "2") && os.Getenv("AMKC_LONG") == "" {
			continue
		}
		t.Run(c.dtype+c.shape+c.cache+c.splits, func(t *testing.T) {
			model := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{`+attentionShapes[c.shape]+`,
				"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 64,
				"max_position_embeddings": 160, "torch_dtype": "bfloat16"}`), 0o600))
			config, diags := ir.ParseConfig([]byte(`{"tiling": {"attention": {"max_splits": `+c.splits+`}}}`), "config")
			require.Empty(t, diags)
			dir := emittedAs(t, c.dtype, c.cache, builder.Options{Model: model, RandomSeed: new(uint64), Config: config,
				Sequences: sequences})
			onCPU(t, dir)
			var outputs []string
			for _, of := range []string{dir, filepath.Join(dir, fmt.Sprintf("sequences%d", sequences))} {
				require.Len(t, structsWith(t, of, "kShareRows"), 1)
				out := outputOnCPU(t, "sequences.cc", []string{of, dir}, fmt.Sprintf("-DSEQUENCES=%d", sequences),
					stagesDefine(t, of))
				outputs = append(outputs, string(out))
			}
			require.Contains(t, outputs[0], "sequence 2: ")
			require.Equal(t, outputs[0], outputs[1])
		})
	}
}
