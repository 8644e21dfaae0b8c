package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	builder "amkc/compiler"
	"amkc/ir"
	"amkc/passes"
	"amkc/runtime/shape"
)

// rowsModel has products of one slab and of several, whose last one is not whole, one to nine tiles on an SM, of which
// eight are finished at once, and heads in units of 4. Its hidden size is 2112, and its intermediate size 3700, or they
// are others.
const rowsModel = `{"model_type": "llama", "hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": 1,
	"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 9504,
	"max_position_embeddings": 160, "torch_dtype": "bfloat16"%s}`

// storedAs says in a config that matrices are those of a GGUF file: of one type, and others of some modules.
func storedAs(types string) string {
	of := map[string]string{}
	for item := range strings.SplitSeq(types, ",") {
		for _, module := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
			"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "lm_head"} {
			if name, kind, named := strings.Cut(item, "="); !named || strings.HasSuffix(module, name) {
				if module != "lm_head" {
					module = "model.layers.0." + module
				}
				of[module] = cmp.Or(kind, name)
			}
		}
	}
	text, _ := json.Marshal(of)
	return `, "quantization_config": {"quant_method": "gguf", "types": ` + string(text) + `}`
}

// What the kernel computes of several tokens in a pass, compiled for the CPU, has the bits of the same tokens on their
// own: products with matrices of each kind of format, in one slab and several, of vectors that are normalised or
// centred, and attention over caches of the model's type and of integers, whole and in splits, with the cache that it
// leaves. With tensor cores, without them, and with them where a vector is not a multiple of four. AMKC_LONG asks for
// more of them.
func TestRowsOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, c := range []struct {
		dtype, weights, cache, reader string
		rows, chunk                   int
		long                          bool
	}{
		{"fp32", "none", "", "", 8, 8192, true},
		{"fp32", "int4,down_proj=int8:g32:asym,o_proj=fp8", "int8", "LayerNorm", 3, 4096, false},
		{"fp32", "fp8,gate_proj=none,up_proj=none", "", "UnitOffsetLayerNorm", 8, 16384, true},
		{"fp32", "none", "int8", "BareLayerNorm", 5, 16384, true},
		{"fp16 plain", "none,down_proj=int4:g32:sym,o_proj=fp8", "int8", "", 8, 4096, true},
		{"bf16 plain", "none", "", "GainLayerNorm", 5, 9216, true},
		{"bf16 odd", "none", "", "", 8, 4096, false},
		{"fp16 odd", "int4,lm_head=none", "int8", "LayerNorm", 2, 16384, true},
		// A warp has three quads of a slab of int4: pairs of them end with one alone. In the last slab it has one.
		{"bf16 even", "int4:g128:sym,o_proj=fp8", "int8", "", 8, 12800, false},
		{"bf16", "int4,down_proj=int8:g32:asym,o_proj=fp8", "", "LayerNorm", 5, 4096, false},
		{"fp16", "fp8,?_proj=int4:g128:sym,o_proj=int8,gate_proj=none,up_proj=none", "int8", "", 5, 4096, true},
		{"fp16", "fp8,down_proj=int4:g32:sym", "int8", "UnitOffsetLayerNorm", 8, 4096, true},
		{"bf16", "int8,down_proj=int4:g32:sym,o_proj=fp8", "", "", 2, 9216, true},
		{"bf16", "int4,down_proj=int8:g32:asym,o_proj=fp8", "int8", "", 8, 4096, true},
		{"bf16", "fp8,down_proj=int4:g64:asym,o_proj=int8:g64:asym", "int8", "", 3, 16384, true},
		{"bf16", "int8,down_proj=fp8", "", "BareLayerNorm", 8, 16384, true},
		{"fp16", "int4:g32:asym", "int8", "", 8, 18432, true},
		{"bf16", "none", "", "", 8, 16384, true},
		{"bf16", "none", "", "GainLayerNorm", 3, 4096, true},
		{"bf16", "stored Q4_K,v_proj=Q6_K,down_proj=Q6_K,o_proj=Q5_K,lm_head=Q5_1", "", "", 5, 9728, false},
		{"fp16 plain", "stored Q4_1,down_proj=Q6_K,o_proj=Q5_K,lm_head=Q4_K", "", "", 3, 9728, true},
		{"fp16", "stored Q5_0,down_proj=Q4_1,o_proj=Q6_K,lm_head=Q6_K", "", "LayerNorm", 8, 16384, true},
	} {
		if c.long && os.Getenv("AMKC_LONG") == "" {
			continue
		}
		name := strings.Join([]string{c.dtype, c.weights, c.cache, c.reader, strconv.Itoa(c.rows)}, " ")
		t.Run(name, func(t *testing.T) {
			config, diags := ir.ParseConfig([]byte(`{"tiling": {"attention": {"split_from": 64, "max_splits": 3},
				"ring": {"chunk_bytes": `+strconv.Itoa(c.chunk)+`}}}`), "config")
			require.Empty(t, diags)
			kind, form, _ := strings.Cut(c.dtype, " ")
			dtype, hidden, intermediate, cores := dtypes[kind], 2112, 3700, "1"
			if kind == "fp32" || form == "plain" {
				cores = "0"
			}
			switch form {
			case "odd":
				intermediate = 3703
			case "even":
				hidden, intermediate = 3072, 4096
			}
			weights, stored := c.weights, ""
			if types, is := strings.CutPrefix(weights, "stored "); is {
				weights, stored = "", storedAs(types)
			}
			model := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"),
				fmt.Appendf(nil, rowsModel, hidden, intermediate, stored), 0o600))
			o := builder.Options{Model: model, ConfigOnly: true, Config: config, DType: &dtype,
				Passes: []ir.Pass{{Rows: c.rows}}}
			if c.cache != "" {
				integers := ir.I8
				o.Cache = &integers
			}
			var err error
			if weights != "" {
				o.Formats, err = passes.ParseWeightFormats(weights)
				require.NoError(t, err)
			}
			dir := emittedForRows(t, o)
			products, attention := structsWith(t, dir, "kColumns"), structsWith(t, dir, "kShareRows")
			require.Len(t, products, 5)
			require.Len(t, attention, 2)
			long := "0"
			if os.Getenv("AMKC_LONG") != "" {
				long = "1"
			}
			defines := []string{"-DAMK_TENSOR_CORES=" + cores, "-DAMK_FP8_CONVERT=1", "-DPASS=" + strconv.Itoa(c.rows),
				"-DPRODUCTS=" + strings.Join(products, ","), stagesDefine(t, dir), "-DLONG=" + long}
			if c.reader != "" {
				defines = append(defines, "-DREADER="+c.reader)
			}
			run := func(headers ...string) []string {
				return strings.Split(string(runOnCPU(t, "rows.cc", headers, defines...)), "\n")
			}
			alone, together := run(dir), run(filepath.Join(dir, shape.Pass{Rows: c.rows}.Dir()), dir)
			require.Len(t, together, len(alone))
			for i, line := range alone {
				require.Equal(t, line, together[i], "line %d of %d", i, len(alone))
				require.NotContains(t, line, ": 0000dead", "was not published")
			}
			for _, what := range []string{fmt.Sprintf("768 by %d row 767 token 1: ", hidden),
				fmt.Sprintf("%d by 512 row %d ", hidden, hidden-1),
				fmt.Sprintf("%d by %d row %d ", 2*intermediate, hidden, 2*intermediate-1),
				fmt.Sprintf("%d by %d row %d ", hidden, intermediate, hidden-1),
				fmt.Sprintf("9504 by %d row 9503 ", hidden), "whole at 130 token 1 ",
				"split at 130 leaves "} {
				is := func(line string) bool { return strings.HasPrefix(line, what) }
				require.True(t, slices.ContainsFunc(alone, is), what)
			}
		})
	}
}

// emittedForRows writes the CUDA headers of a build with passes of several rows, for an H200 unless another is asked
// for, and returns the directory.
func emittedForRows(t *testing.T, o builder.Options) (dir string) {
	t.Helper()
	if o.Target == nil {
		o.Target = ir.FindTarget("h200")
	}
	l, err := builder.RunPasses(o)
	require.NoError(t, err)
	defer l.Close()
	files, err := codegen.Project(l.Program, l.Graph, "m", l.Passes...)
	require.NoError(t, err)
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return !strings.HasSuffix(name, "h") })
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	return dir
}
