package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
)

// onCPU edits the headers of a build so that block.h can run them.
func onCPU(t *testing.T, dir string) {
	t.Helper()
	headers, err := filepath.Glob(filepath.Join(dir, "amk", "*.cuh"))
	require.NoError(t, err)
	for _, header := range headers {
		text, err := os.ReadFile(header)
		require.NoError(t, err)
		for _, e := range instructions {
			text = e.is.ReplaceAll(text, []byte(e.on))
		}
		require.NoError(t, os.WriteFile(header, assembly.ReplaceAll(text, []byte(";")), 0o600))
	}
}

// instructions are those of which block.h has what they do; of others nothing is left.
var instructions = func() (list []struct {
	is *regexp.Regexp
	on string
}) {
	for _, e := range [][2]string{
		{`asm volatile\("bar\.sync 1.*?\);`, "block_barrier();"},
		{`asm volatile\("ld\.relaxed\.gpu.*?\);`, "memcpy(&v, p, sizeof v);"},
		{`asm volatile\("st\.relaxed\.gpu.*?\);`, "*p = v;"},
		{`u32 done;(\s+asm volatile\()`, "u32 done = 1;$1"},
		{`asm\("ex2\.approx.*?\);`, "y = exp2f(x);"},
		{`asm\("mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.(bf16|f16).*?"r"\(b1\)\);`,
			"product_of_$1(d, a0, a1, a2, a3, b0, b1);"},
		{`asm\("mma\.sync\.aligned\.m16n8k32\.row\.col\.s32\.(s8|u8).*?"r"\(b\.y\)\);`,
			"product_of_$1(d, a0, a1, a2, a3, b);"},
		{`asm\("\{ \.reg \.b16 low, high;.*?cvt\.rn\.f16x2\.e4m3x2.*?\);`,
			"halves = make_uint2(halves_of_e4m3(four), halves_of_e4m3(four >> 16));"},
		{`asm volatile\(\s+"\{\\n \.reg \.pred p;.*?@p ld\.shared\.v2.*?\);`,
			"if (wanted) memcpy(&to, from, sizeof to);"},
		{`asm volatile\("movmatrix.*?\);`, "d = transposed(a);"},
	} {
		list = append(list, struct {
			is *regexp.Regexp
			on string
		}{regexp.MustCompile(`(?s)` + e[0]), e[1]})
	}
	return list
}()

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
// and of integers with scales, with tensor cores and without them. AMKC_LONG asks for all of it with all shapes.
func TestAttentionOfTheKernel(t *testing.T) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	onlyCores := map[string]string{"fp16": "1", "fp32": "0"}
	stage := regexp.MustCompile(`struct (\w+) \{\n(?:  .*\n)*?  .* kShareRows`)
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
			case name == "group" && c.dtype != "fp32" && c.cores == "0": // no room for the results of so many heads
				continue
			}
			t.Run(name+" "+c.dtype+" "+c.cache+" "+c.cores, func(t *testing.T) {
				o := builder.Options{Model: model, RandomSeed: new(uint64), Config: config}
				dir := emittedAs(t, c.dtype, c.cache, o)
				schedule, err := os.ReadFile(filepath.Join(dir, "schedule.h"))
				require.NoError(t, err)
				var stages []string
				for _, m := range stage.FindAllSubmatch(schedule, -1) {
					stages = append(stages, string(m[1]))
				}
				require.NotEmpty(t, stages)
				onCPU(t, dir)
				program := filepath.Join(dir, "attention")
				out, err := exec.Command(compiler, "-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-w", "-I"+dir,
					"-DAMK_TENSOR_CORES="+c.cores, "-DSTAGES="+strings.Join(stages, ","), "-o", program,
					"testdata/attention.cc").CombinedOutput()
				require.NoError(t, err, "%s", out)
				out, err = exec.Command(program).CombinedOutput()
				require.NoError(t, err, "%s", out)
			})
		}
	}
}
