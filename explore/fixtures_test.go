package explore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/ir"
	"amkc/passes"
)

// A fixture is a small model, and how it is compiled for a GPU and for the machine: testdata/gpu.json, which
// bench/explore_gpu.py reads, too.
type fixture struct {
	Name      string
	Covers    string
	Base      string // a model of testdata/models/zoo; none: twoLayers
	Config    map[string]any
	Tiling    map[string]any
	DType     string
	Weights   string
	Cache     string
	Rows      int
	Positions int
}

// twoLayers is the config of a model in which each SM has a few tiles of each matrix.
const twoLayers = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
"intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
"vocab_size": 96, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
"tie_word_embeddings": false, "torch_dtype": "bfloat16"}`

func readFixtures(t *testing.T) (all []fixture) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "gpu.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// compile makes a build for 4 SMs, without a kernel for prompts.
func (f *fixture) compile(t *testing.T) string {
	t.Helper()
	text := []byte(twoLayers)
	if f.Base != "" {
		var err error
		text, err = os.ReadFile(filepath.Join("..", "testdata", "models", "zoo", f.Base, "config.json"))
		require.NoError(t, err)
	}
	var config map[string]any
	require.NoError(t, json.Unmarshal(text, &config))
	for key, value := range f.Config {
		config[key] = value
	}
	text, err := json.Marshal(config)
	require.NoError(t, err)
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), text, 0o600))
	tiling := map[string]any{"prompt": map[string]any{"tokens": 0}}
	for key, value := range f.Tiling {
		tiling[key] = value
	}
	text, err = json.Marshal(map[string]any{"tiling": tiling})
	require.NoError(t, err)
	schedule, problems := ir.ParseConfig(text, f.Name)
	require.Empty(t, problems)
	o := compiler.Options{Model: model, Name: f.Name, Target: ir.ArchTarget(90, 4), Config: schedule,
		RandomSeed: new(uint64), MaxSeq: f.Positions}
	if f.DType != "" {
		o.DType = map[string]*ir.DType{"fp16": dtypeOf(ir.F16), "fp32": dtypeOf(ir.F32)}[f.DType]
		require.NotNil(t, o.DType)
	}
	if f.Weights != "" {
		o.Formats, err = passes.ParseWeightFormats(f.Weights)
		require.NoError(t, err)
	}
	if f.Cache != "" {
		require.Equal(t, "int8", f.Cache)
		o.Cache = dtypeOf(ir.I8)
	}
	if f.Rows > 1 {
		o.Passes = []ir.Pass{{Rows: f.Rows}}
	}
	dir := filepath.Join(t.TempDir(), "build")
	_, err = compiler.Compile(t.Context(), compiler.BuildOptions{Options: o, OutDir: dir, NoBuild: true,
		NoLauncher: true})
	require.NoError(t, err)
	return dir
}

func dtypeOf(d ir.DType) *ir.DType { return &d }
