package compiler

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/codegen/notices"
	"amkc/ir"
)

var update = flag.Bool("update", false, "rewrite the golden build trees")

const root = "../testdata"

// goldenCases are whole build trees under testdata/golden. What a build copies verbatim (amk/, the launcher's
// modules and their sums, library/, python/, licenses) is left out: it is in this repository already.
var goldenCases = []struct {
	name, model, target string
	dtype               ir.DType
	maxSeq              int
	config              ir.ScheduleConfig
	passes              []ir.Pass
}{
	{name: "pycoder-5m_h200_bf16", model: "pycoder-5m", target: "h200", dtype: ir.BF16, passes: []ir.Pass{{Rows: 8}}},
	{name: "mistral-nemo_h200_bf16_sequences", model: "zoo/mistral-nemo", target: "h200", dtype: ir.BF16, maxSeq: 128,
		passes: []ir.Pass{{Rows: 2}, {Sequences: 4}, {Sequences: 4, Rows: 2}}},
	{name: "llama-odd-dims_h200_fp32", model: "zoo/llama-odd-dims", target: "h200", dtype: ir.F32, maxSeq: 64},
	{name: "qwen2-bias_h200_bf16", model: "zoo/qwen2-bias", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "llama-biases-yarn_h200_bf16", model: "zoo/llama-biases-yarn", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "qwen3-qknorm_h200_bf16", model: "zoo/qwen3-qknorm", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "qwen3-odd-dims_t4_fp32_split", model: "zoo/qwen3-odd-dims", target: "t4", dtype: ir.F32, maxSeq: 64,
		config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 16, "max_splits": 4}}}},
	{name: "gemma-tied_h200_bf16", model: "zoo/gemma-tied", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "gemma3-tied_h200_bf16", model: "zoo/gemma3-tied", target: "h200", dtype: ir.BF16, maxSeq: 64}, // post norms
	{name: "gemma4-keys-serve_h200_bf16", model: "zoo/gemma4-keys-serve", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "gemma2-split-k_h200_bf16", model: "zoo/gemma2-split-k", target: "h200", dtype: ir.BF16, maxSeq: 64,
		passes: []ir.Pass{{Rows: 8}}},
	{name: "phi3-short_h200_bf16", model: "zoo/phi3-short", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "gpt-neox-parallel_h200_bf16", model: "zoo/gpt-neox-parallel", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "gpt2_h200_bf16", model: "zoo/gpt2", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "starcoder2-tied_h200_bf16", model: "zoo/starcoder2-tied", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "granite-biases_h200_bf16", model: "zoo/granite-biases", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "smollm3-tied_h200_bf16", model: "zoo/smollm3-tied", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "exaone4-windows_h200_bf16", model: "zoo/exaone4-windows", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "olmo2-plain_h200_bf16", model: "zoo/olmo2-plain", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "hunyuan-alpha_h200_bf16", model: "zoo/hunyuan-alpha", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "mistral-window_h200_bf16", model: "zoo/mistral-window", target: "h200", dtype: ir.BF16, maxSeq: 128,
		config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 16, "max_splits": 4},
			"ring": {"chunk_bytes": 4096}}}}, // of 32 rows, so that the window is split
	{name: "qwen3-window-half_h200_bf16", model: "zoo/qwen3-window-half", target: "h200", dtype: ir.BF16, maxSeq: 128,
		config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 64, "max_splits": 4},
			"ring": {"chunk_bytes": 4096}}}}, // layers of two kinds
	{name: "gpt-oss-sinks_h200_bf16", model: "zoo/gpt-oss-sinks", target: "h200", dtype: ir.BF16, maxSeq: 48},
	{name: "mixtral-window_h200_bf16", model: "zoo/mixtral-window", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "olmoe-plain_t4_fp16", model: "zoo/olmoe-plain", target: "t4", dtype: ir.F16, maxSeq: 64},
	{name: "llama-layer-heads_h200_bf16", model: "zoo/llama-layer-heads", target: "h200", dtype: ir.BF16, maxSeq: 64},
	{name: "llama-gqa_t4_fp16_split", model: "zoo/llama-gqa", target: "t4", dtype: ir.F16, maxSeq: 128,
		config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 16, "max_splits": 4}}}},
	{name: "llama-gqa_h200_bf16_long", model: "zoo/llama-gqa", target: "h200", dtype: ir.BF16, maxSeq: 64,
		passes: []ir.Pass{{Rows: 2}}, // variants that stream and attend in ways of their own
		config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 16, "max_splits": 4},
			"short": {"rotation": 2}, "long": {"rotation": 3, "run_ahead": 4, "pace": 500, "stock": 0}}}},
}

func lowerModel(t testing.TB, model, target string, dtype ir.DType, maxSeq int, config ir.ScheduleConfig) *Scheduled {
	t.Helper()
	return lowerPasses(t, model, target, dtype, maxSeq, config)
}

func lowerPasses(t testing.TB, model, target string, dtype ir.DType, maxSeq int, config ir.ScheduleConfig,
	of ...ir.Pass) *Scheduled {
	t.Helper()
	l, err := RunPasses(Options{Model: filepath.Join(root, "models", model), Name: filepath.Base(model),
		Target: ir.FindTarget(target),
		DType:  &dtype, MaxSeq: maxSeq, Config: config, Passes: of, Check: true})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// generated returns the files of a build that amkc renders, rather than copies.
func generated(t testing.TB, l *Scheduled) map[string][]byte {
	t.Helper()
	files, err := codegen.Project(l.Program, l.Graph, l.Program.Model.Name, l.Passes...)
	require.NoError(t, err)
	maps.DeleteFunc(files, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, "amk/") || strings.HasPrefix(name, "launcher/modules/") ||
			name == "launcher/go.sum" || strings.HasPrefix(name, "library/") ||
			strings.HasPrefix(name, "python/") || name == "LICENSE" || name == notices.File
	})
	return files
}

func TestGoldenBuilds(t *testing.T) {
	for _, c := range goldenCases {
		t.Run(c.name, func(t *testing.T) {
			files := generated(t, lowerPasses(t, c.model, c.target, c.dtype, c.maxSeq, c.config, c.passes...))
			dir := filepath.Join(root, "golden", c.name)
			if *update {
				require.NoError(t, os.RemoveAll(dir))
				for name, text := range files {
					path := filepath.Join(dir, name)
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
					require.NoError(t, os.WriteFile(path, text, 0o644))
				}
			}
			var want []string
			require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					name, _ := filepath.Rel(dir, path)
					want = append(want, filepath.ToSlash(name))
				}
				return err
			}))
			slices.Sort(want)
			require.Equal(t, want, slices.Sorted(maps.Keys(files)))
			for _, name := range want {
				text, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, string(text), string(files[name]), name)
			}
		})
	}
}

// The same input gives the same bytes: again in this process, and from another directory.
func TestBuildsAreDeterministic(t *testing.T) {
	c := goldenCases[0]
	first := generated(t, lowerPasses(t, c.model, c.target, c.dtype, c.maxSeq, c.config, c.passes...))
	again := lowerPasses(t, c.model, c.target, c.dtype, c.maxSeq, c.config, c.passes...)
	require.Equal(t, first, generated(t, again))
	model, err := filepath.Abs(filepath.Join(root, "models", c.model))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	l, err := RunPasses(Options{Model: model, Name: c.model, Target: ir.FindTarget(c.target), DType: &c.dtype,
		Passes: c.passes})
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, first, generated(t, l))
}
