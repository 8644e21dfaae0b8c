package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Experts of which layers have matrices in different types of blocks, as tools that write GGUF mix them, are compiled:
// what is emitted is read back as the program that was proved, whose layers list where their matrices begin.
func TestExpertsInMixedBlocks(t *testing.T) {
	types := map[string]string{}
	for layer, down := range []string{"Q6_K", "Q4_K", "Q6_K"} {
		for e := range 4 {
			part := fmt.Sprintf("model.layers.%d.mlp.experts.%d.", layer, e)
			types[part+"gate_proj"], types[part+"up_proj"], types[part+"down_proj"] = "Q4_K", "Q4_K", down
		}
	}
	config, err := json.Marshal(map[string]any{"model_type": "qwen3_moe", "num_hidden_layers": 3, "hidden_size": 256,
		"vocab_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_experts": 4,
		"num_experts_per_tok": 2, "moe_intermediate_size": 256, "max_position_embeddings": 64,
		"torch_dtype": "bfloat16", "quantization_config": map[string]any{"quant_method": "gguf", "types": types}})
	require.NoError(t, err)
	model, build := t.TempDir(), filepath.Join(t.TempDir(), "build")
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), config, 0o644))
	code, _, stderr := amkc(model, "-o", build, "--no-build", "--target", "sm_90", "--num-sms", "6",
		"--random-weights", "1", "--rows", "2")
	require.Equal(t, 0, code, stderr)
	text, err := os.ReadFile(filepath.Join(build, "megakernel.cu"))
	require.NoError(t, err)
	require.Contains(t, string(text), "weights + kExpertsDownWeightAt[layer]")
}
