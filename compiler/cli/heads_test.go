package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
)

// wideHeads have several words of q and k for each thread of a block, and more than a warp reads at once.
const wideHeads = `{"model_type": "olmo2", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1,
	"num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 160, "vocab_size": 64,
	"max_position_embeddings": 64, "torch_dtype": "bfloat16", "pad_token_id": null}`

// What the kernel makes of the heads that attention normalises, compiled for the CPU, is the norm by definition: of
// each head or of all, with the mean and without it, with weights of each head or of all, with and without a bias,
// rotated or not, with tensor cores and without them.
func TestHeadsOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	wide := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(wide, "config.json"), []byte(wideHeads), 0o600))
	for _, c := range []struct {
		model, dtype string
		tensorCores  []string
	}{
		{models + "zoo/olmo2-plain", "bf16", []string{"1"}},
		{wide, "bf16", []string{"0", "1"}},
		{wide, "fp32", []string{"0"}},
	} {
		dir := emittedAs(t, c.dtype, "", builder.Options{Model: c.model, RandomSeed: new(uint64)})
		for _, cores := range c.tensorCores {
			runOnCPU(t, "heads.cc", []string{dir}, "-DAMK_TENSOR_CORES="+cores)
		}
	}
}
