package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/runtime/shape"
)

// What attention of a pass of several sequences publishes and appends, compiled for the CPU, is to the bit what the
// kernel of one token of the same build makes of each row of each on its own: at positions of their own, some of them
// absent, whose caches stay as they are. A sequence has one row or several. Heads may be normalised and rotated before.
func TestAttentionOfSequences(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, c := range []struct {
		shape, cache, splits, dtype string
		sequences, rows, normed     int
		long                        bool // for AMKC_LONG alone: the others have what it has, in other numbers
	}{
		{shape: "wide", splits: "3", sequences: 4, rows: 1},
		{shape: "window", cache: "int8", splits: "1", sequences: 4, rows: 1},
		{shape: "wide", cache: "int8", splits: "1", sequences: 4, rows: 1},
		{shape: "window", splits: "2", sequences: 4, rows: 1, long: true},
		{shape: "group", splits: "2", sequences: 4, rows: 1, long: true},
		{shape: "window", cache: "int8", splits: "3", dtype: "fp32", sequences: 4, rows: 1},
		{shape: "odd", splits: "2", dtype: "fp32", sequences: 4, rows: 1, long: true},

		{shape: "window", splits: "3", sequences: 2, rows: 4},
		{shape: "wide", splits: "3", sequences: 2, rows: 4, long: true},
		{shape: "window", splits: "1", sequences: 4, rows: 2, long: true},
		{shape: "window", cache: "int8", splits: "3", sequences: 2, rows: 4, long: true},
		{shape: "normed", splits: "2", sequences: 4, rows: 2, normed: 2},
		{shape: "normed", cache: "int8", splits: "1", sequences: 2, rows: 3, normed: 3, long: true},
		{shape: "odd", splits: "2", sequences: 2, rows: 3}, // of whose last columns one group of two has none
		{shape: "window", cache: "int8", splits: "3", dtype: "fp32", sequences: 2, rows: 4},
		{shape: "normed", splits: "1", dtype: "fp32", sequences: 4, rows: 2, normed: 2, long: true},
	} {
		if c.long && os.Getenv("AMKC_LONG") == "" {
			continue
		}
		pass := shape.Pass{Sequences: c.sequences, Rows: c.rows}
		t.Run(c.dtype+c.shape+c.cache+c.splits+" "+pass.String(), func(t *testing.T) {
			model, shape := t.TempDir(), attentionShapes[c.shape]
			if c.normed > 0 {
				shape = `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20, "model_type": "qwen3"`
			}
			require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{`+shape+`,
				"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 64,
				"max_position_embeddings": 160, "torch_dtype": "bfloat16"}`), 0o600))
			config, diags := ir.ParseConfig([]byte(`{"tiling": {"attention": {"max_splits": `+c.splits+`}}}`), "config")
			require.Empty(t, diags)
			dir := emittedAs(t, cmp.Or(c.dtype, "bf16"), c.cache, builder.Options{Model: model, RandomSeed: new(uint64),
				Config: config, Passes: []ir.Pass{ir.PassOf(c.sequences, 1), ir.PassOf(c.sequences, c.rows)}})
			of := filepath.Join(dir, pass.Dir())
			require.Len(t, structsWith(t, of, "kShareRows"), 1)
			defines := []string{fmt.Sprint("-DSEQUENCES=", c.sequences),
				fmt.Sprint("-DROWS=", c.rows), stagesDefine(t, of)}
			if combine := structsWith(t, of, "kWidth"); len(combine) > 0 {
				defines = append(defines, "-DCOMBINE="+combine[0])
			}
			if c.normed > 0 {
				defines = append(defines, fmt.Sprint("-DNORMED=", c.normed))
			}
			requireAlike(t, dir, pass, "attention_rows.cc", defines...)
		})
	}
}
