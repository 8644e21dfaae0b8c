package compiler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
)

// The page of an operand that another product writes is a constant of prompt.cu. Where layers have it on pages of their
// own, it is prepared.
func TestOperandsOnSeveralPages(t *testing.T) {
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"model_type": "llama",
		"hidden_size": 256, "intermediate_size": 2048, "num_hidden_layers": 3, "num_attention_heads": 4,
		"num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 512,
		"torch_dtype": "bfloat16"}`), 0o600))
	for pages, written := range map[string]bool{"graph_color": true, "none": false} {
		l, err := RunPasses(Options{Model: model, Name: "m", Target: ir.FindTarget("h200"), ConfigOnly: true,
			Config: ir.ScheduleConfig{PageAllocation: pages}})
		require.NoError(t, err)
		files, err := codegen.CUDA(l.Program)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		prompt := string(files["prompt.cu"])
		require.NotEmpty(t, prompt)
		if written {
			require.Contains(t, prompt, "static constexpr Page kPage = kAct;")
		} else {
			require.NotContains(t, prompt, "OperandPage")
		}
	}
}
