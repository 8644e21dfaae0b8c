package compiler

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/knobs"
	"amkc/passes"
)

// Which builds have a kernel for prompts, and of how many tokens: the facts, the files and the Makefile say the same.
func TestWhichBuildsReadPrompts(t *testing.T) {
	tokens := func(n int) (c ir.ScheduleConfig) {
		knobs.PromptTokens.Set(&c, n)
		return c
	}
	barriers := ir.ScheduleConfig{Tiling: map[string]map[string]int{"loop": {"barrier": 1}}}
	i8, small := ir.I8, ir.ScheduleConfig{SMemBytesPerBlock: 60000}
	for name, c := range map[string]struct {
		model, target string
		dtype         ir.DType
		cache         *ir.DType
		config        ir.ScheduleConfig
		want          int
	}{
		"bf16":                 {"zoo/llama-gqa", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"fp16":                 {"zoo/llama-gqa", "a100", ir.F16, nil, ir.ScheduleConfig{}, 2048},
		"norms per head":       {"zoo/qwen3-qknorm", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"as the user says":     {"zoo/llama-gqa", "h200", ir.BF16, nil, tokens(128), 128},
		"none":                 {"zoo/llama-gqa", "h200", ir.BF16, nil, tokens(0), 0},
		"fp32":                 {"zoo/llama-gqa", "h200", ir.F32, nil, ir.ScheduleConfig{}, 0},
		"no tensor cores":      {"zoo/llama-gqa", "t4", ir.F16, nil, ir.ScheduleConfig{}, 0},
		"a cache of integers":  {"zoo/llama-gqa", "h200", ir.BF16, &i8, ir.ScheduleConfig{}, 2048},
		"windows":              {"zoo/mistral-window", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"quantised":            {"quantised/models/llama-ct-int4", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"fp8":                  {"quantised/models/llama-ct-fp8", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"experts":              {"zoo/mixtral-window", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"experts by mma":       {"zoo/olmoe-plain", "a100", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"experts in MXFP4":     {"zoo/gpt-oss-mxfp4", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"experts of some":      {"zoo/glm4-moe-groups", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"barriers":             {"zoo/llama-gqa", "h200", ir.BF16, nil, barriers, 0},
		"uneven columns":       {"zoo/llama-biases-yarn", "h200", ir.BF16, nil, ir.ScheduleConfig{}, 0},
		"a block of 99 KB":     {"pycoder-5m", "l4", ir.BF16, nil, ir.ScheduleConfig{}, 2048},
		"8B in 99 KB":          {"../configs/llama-3.1-8b", "rtx4090", ir.BF16, nil, ir.ScheduleConfig{}, 1280},
		"a block that is made": {"zoo/llama-gqa", "h200", ir.BF16, nil, small, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := RunPasses(Options{Model: root + "/models/" + c.model, Name: "m", Target: ir.FindTarget(c.target),
				DType: &c.dtype, Cache: c.cache, Config: c.config, ConfigOnly: true})
			require.NoError(t, err)
			facts, err := codegen.Facts(l.Program)
			require.NoError(t, err)
			require.Equal(t, c.want, facts.Prompt)
			files, err := codegen.Project(l.Program, l.Graph, "m")
			require.NoError(t, err)
			if c.want == 0 {
				require.NotContains(t, files, "prompt.cu")
				require.NotContains(t, string(files["Makefile"])+string(files["README.md"]), "prompt.")
				return
			}
			require.Contains(t, string(files["Makefile"]), " prompt.fatbin")
			require.Contains(t, string(files["README.md"]), "up to "+strconv.Itoa(c.want)+" tokens of a prompt")
			require.Regexp(t, `kMostPromptTokens = `+strconv.Itoa(c.want)+`;`, string(files["schedule.h"]))
			// What the compiler counts is asserted by the kernel, so a build that nvcc takes needs as much.
			f, err := codegen.Footprint(l.Program)
			require.NoError(t, err)
			m := regexp.MustCompile(`kPromptPlaces\.end == (\d+)`).FindStringSubmatch(string(files["prompt.cu"]))
			require.NotNil(t, m)
			bytes, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			without := *l.Program
			without.Config = withoutPrompts(without.Config)
			plain, err := codegen.Footprint(&without)
			require.NoError(t, err)
			const page = 2 << 20
			paged := func(n int) uint64 { return uint64((n + page - 1) / page * page) }
			// and an embedding and a last hidden state of each token, where others have those of 16 steps
			vectors := 2 * (paged(4*c.want*l.Program.Model.Hidden) - paged(4*16*l.Program.Model.Hidden))
			require.Equal(t, paged(bytes+4*c.want)+vectors, f.Bytes()-plain.Bytes())
		})
	}
}

// A chunk of a quantised matrix may have many quads of a warp. Only chains of elements as they are have to fit the ring
// of a prompt's products, and no ring of a step has room for chunks of which they would not.
func TestPromptsOfLargeChunks(t *testing.T) {
	config := ir.ScheduleConfig{Tiling: map[string]map[string]int{"ring": {"chunk_bytes": 57 * 256},
		"warps": {"qkv": 2, "o": 2, "gate_up": 2, "down": 2, "lm_head": 2}}}
	formats, err := passes.ParseWeightFormats("int4")
	require.NoError(t, err)
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"model_type": "llama",
		"hidden_size": 256, "intermediate_size": 3328, "num_hidden_layers": 1, "num_attention_heads": 4,
		"vocab_size": 96, "max_position_embeddings": 96, "torch_dtype": "bfloat16"}`), 0o600))
	l, err := RunPasses(Options{Model: model, Target: ir.FindTarget("h200"), Config: config, Formats: formats,
		ConfigOnly: true})
	require.NoError(t, err)
	facts, err := codegen.Facts(l.Program)
	require.NoError(t, err)
	require.Positive(t, facts.Prompt, "13 quads of a warp")
}

// withoutPrompts is a configuration that leaves the kernel for prompts out.
func withoutPrompts(c ir.ScheduleConfig) ir.ScheduleConfig {
	tiling := map[string]map[string]int{}
	for group, of := range c.Tiling {
		tiling[group] = of
	}
	c.Tiling = tiling
	delete(c.Tiling, "prompt")
	knobs.PromptTokens.Set(&c, 0)
	return c
}
