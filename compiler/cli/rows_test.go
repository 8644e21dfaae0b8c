package cli

import (
	"bytes"
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

// A pass of several rows is compared with as many of one.
const rowsOfPass = 8

// Shapes of heads whose passes the kernel takes: groups that fill columns and that do not, or are several sets of
// warps, in heads of whole blocks and of others; norms of heads; windows that end in a block, of a few rows and of some
// splits; and the same over caches of integers.
var rowsOfHeads = map[string]struct {
	config string
	normed int // the form of norms that attention_rows.cc puts before it; 0: none
	cache  string
	dtype  string // bf16, unless it says another
	long   bool   // for AMKC_LONG alone: the others have all that this shape has, in other numbers
	splits int    // 3, unless it says another
}{
	"many splits": {config: `"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 64,
		"model_type": "llama"`, splits: 70},
	"plain window": {config: `"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "mistral", "sliding_window": 27`, dtype: "fp32"},
	"plain own row in integers": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "mistral", "sliding_window": 1`, cache: "int8", dtype: "fp32", long: true},
	"plain narrow window": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
		"model_type": "mistral", "sliding_window": 3`, dtype: "fp32", long: true},
	"plain norms": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 34,
		"model_type": "qwen3"`, normed: 3, cache: "int8", dtype: "fp32", long: true},
	"plain whole norms": {config: `"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 160,
		"model_type": "qwen3"`, normed: 2, dtype: "fp32", long: true},
	"wide group": {config: `"num_attention_heads": 12, "num_key_value_heads": 1, "head_dim": 64,
		"model_type": "llama"`},
	"window": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "model_type": "mistral",
		"sliding_window": 27`, long: true},
	"narrow window": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "mistral", "sliding_window": 3`},
	"own row": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "mistral", "sliding_window": 1`, long: true},
	"wide window": {config: `"num_attention_heads": 18, "num_key_value_heads": 2, "head_dim": 32,
		"model_type": "mistral", "sliding_window": 111`},
	"group": {config: `"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
		"model_type": "llama"`, long: true},
	"odd": {config: `"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "llama"`},
	"odd norms": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "qwen3"`, normed: 1},
	"wide norms": {config: `"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 160,
		"model_type": "qwen3"`, normed: 2},
	"norms over integers": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "qwen3"`, normed: 3, cache: "int8"},
	"window over integers": {config: `"num_attention_heads": 18, "num_key_value_heads": 2, "head_dim": 32,
		"model_type": "mistral", "sliding_window": 27`, cache: "int8"},
	"own row in integers": {config: `"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20,
		"model_type": "mistral", "sliding_window": 1`, cache: "int8"},
}

// What attention of a pass of several rows publishes and appends is, to the bit, what it does row by row. AMKC_LONG
// asks at more positions, of more shapes, and for every form of norms in each shape that has some.
func TestRowsOfAttention(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for name, shape := range rowsOfHeads {
		if shape.long && os.Getenv("AMKC_LONG") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			model := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{`+shape.config+`,
				"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 64,
				"max_position_embeddings": 160, "torch_dtype": "bfloat16"}`), 0o600))
			dtype, bytes := cmp.Or(shape.dtype, "bf16"), 12288
			if dtype == "fp32" {
				bytes = 24576
			}
			config, diags := ir.ParseConfig(fmt.Appendf(nil, `{"tiling": {"attention": {"split_from": 64,
				"max_splits": %d}, "ring": {"chunk_bytes": %d}}}`, cmp.Or(shape.splits, 3), bytes), "config")
			require.Empty(t, diags)
			dir := emittedAs(t, dtype, shape.cache, builder.Options{Model: model, RandomSeed: new(uint64),
				Config: config, Passes: []ir.Pass{{Rows: rowsOfPass}}})
			defines := []string{stagesDefine(t, dir)}
			if combine := structsWith(t, dir, "kWidth"); len(combine) > 0 {
				defines = append(defines, "-DCOMBINE="+combine[0])
			}
			if shape.normed > 0 {
				defines = append(defines, fmt.Sprint("-DNORMED=", shape.normed))
			}
			requireRowsAlike(t, dir, "attention_rows.cc", append(defines, "-DSEQUENCES=1")...)
		})
	}
}

// What a product finishes of a row is, to the bit, what it finishes of the row alone: after each reader, with groups
// of warps, in slabs, and in several flushes. AMKC_LONG asks for more of them.
func TestRowsOfProducts(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir := emittedAs(t, "bf16", "", builder.Options{Model: models + "pycoder-5m",
		Passes: []ir.Pass{{Rows: rowsOfPass}}})
	requireRowsAlike(t, dir, "product_rows.cc")
}

// What a product with experts finishes of a row is, to the bit, what it finishes of the row alone, where quantised
// matrices have columns enough for several slabs, which one token has not.
func TestRowsOfExperts(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"model_type": "mixtral",
		"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1,
		"num_key_value_heads": 1, "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 64,
		"max_position_embeddings": 64, "torch_dtype": "bfloat16"}`), 0o600))
	o := builder.Options{Model: model, RandomSeed: new(uint64), Passes: []ir.Pass{{Rows: rowsOfPass}}}
	o.Config.Tiling = map[string]map[string]int{"ring": {"chunk_bytes": 16384}}
	requireRowsAlike(t, emittedAs(t, "bf16", "", o), "experts_rows.cc")
}

// requireRowsAlike is requireAlike of the passes of several rows.
func requireRowsAlike(t *testing.T, dir, program string, defines ...string) {
	t.Helper()
	requireAlike(t, dir, shape.Pass{Rows: rowsOfPass}, program, append(defines, fmt.Sprint("-DROWS=", rowsOfPass))...)
}

// requireAlike compiles a program with the sources of a build for one token and with those for passes, and demands that
// both write the same.
func requireAlike(t *testing.T, dir string, pass shape.Pass, program string, defines ...string) {
	t.Helper()
	all := 0
	if os.Getenv("AMKC_LONG") != "" {
		all = 1
	}
	defines = append(defines, fmt.Sprint("-DALL=", all))
	one := runOnCPU(t, program, []string{dir}, defines...)
	several := runOnCPU(t, program, []string{filepath.Join(dir, pass.Dir()), dir}, defines...)
	require.NotEmpty(t, one)
	require.True(t, bytes.Equal(one, several), "passes differ")
}
