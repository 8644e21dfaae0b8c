package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
)

// Shapes of heads: a group of two and one of several groups of heads, in blocks that a warp's fragments divide and in
// odd ones, with a window, and in splits.
var attentionShapes = map[string]string{
	"wide":  `"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "model_type": "llama"`,
	"odd":   `"num_attention_heads": 12, "num_key_value_heads": 1, "head_dim": 20, "model_type": "llama"`,
	"group": `"num_attention_heads": 70, "num_key_value_heads": 1, "head_dim": 80, "model_type": "llama"`,
	"window": `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "model_type": "mistral",
		"sliding_window": 27`,
}

// What the kernel's attention makes of a cache, compiled for the CPU, is the softmax by definition: of the model's type
// and of integers with scales, with tensor cores and without them; of heads with sinks too, where the cache is of
// integers. AMKC_LONG asks for all of it with all shapes.
func TestAttentionOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	onlyCores := map[string]string{"fp16": "1", "fp32": "0"}
	for name, shape := range attentionShapes {
		model := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{`+shape+`,
			"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 64,
			"max_position_embeddings": 160, "torch_dtype": "bfloat16"}`), 0o600))
		text := `{"tiling": {"attention": {"split_from": 64, "max_splits": 3}, "ring": {"chunk_bytes": 8448}}}`
		if name == "wide" || name == "group" {
			text = `{"tiling": {"attention": {"split_from": 64}}}`
		}
		config, diags := ir.ParseConfig([]byte(text), "config")
		require.Empty(t, diags)
		for _, c := range []struct{ dtype, cache, cores string }{
			{"bf16", "", "1"}, {"bf16", "int8", "1"}, {"bf16", "int8", "0"},
			{"fp16", "int8", "1"}, {"fp16", "int8", "0"}, {"fp32", "", "0"}, {"fp32", "int8", "0"},
		} {
			first := c.dtype == "bf16" && c.cores == "1" || name == "odd" && c.cores == onlyCores[c.dtype]
			switch {
			case !(first && c.cache != "") && os.Getenv("AMKC_LONG") == "":
				continue
			case name == "group" && c.cores == "0": // no room for the results of that many heads
				continue
			}
			t.Run(name+" "+c.dtype+" "+c.cache+" "+c.cores, func(t *testing.T) {
				o := builder.Options{Model: model, RandomSeed: new(uint64), Config: config}
				dir := emittedAs(t, c.dtype, c.cache, o)
				for _, sinks := range []string{"0", "1"} {
					if sinks == "0" || c.cache == "int8" {
						runOnCPU(t, "attention.cc", []string{dir}, "-DAMK_TENSOR_CORES="+c.cores, "-DSINKS="+sinks,
							stagesDefine(t, dir))
					}
				}
			})
		}
	}
}
