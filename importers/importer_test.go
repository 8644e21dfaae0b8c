package importers

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/internal/watch"
	"amkc/ir"
)

const zoo = "../testdata/models/zoo/"

// LowerGraph is pass lower. Package passes has it and imports this one: lower_test.go sets it.
var LowerGraph func(*ir.Graph) (*ir.Program, error)

// An imported model, with what it was imported of.
type imported struct {
	*Imported
	source Source
}

func importOf(src Source) (*imported, error) {
	m, err := Import(src)
	return &imported{m, src}, err
}

func importModel(t testing.TB, dir string) (*imported, error) {
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return importOf(Source{Name: filepath.Base(dir), Config: c.Config, Weights: c})
}

func TestZooImports(t *testing.T) {
	want := map[string]ir.Model{
		"llama-gqa": {DTypes: ir.Uniform(ir.F32), Layers: 3, Hidden: 64, Intermediate: 176, Heads: 4, KVHeads: 2,
			HeadDim: 16,
			Vocab:   512},
		"llama-mha-tied-bf16": {DTypes: ir.Uniform(ir.BF16), Layers: 3, Hidden: 64, Intermediate: 176, Heads: 4,
			KVHeads: 4,
			HeadDim: 16, Vocab: 512,
			Tied: true},
		"llama-odd-dims": {DTypes: ir.Uniform(ir.BF16), Layers: 3, Hidden: 72, Intermediate: 200, Heads: 9, KVHeads: 3,
			HeadDim: 8, Vocab: 521},
		"llama-rope-llama3": {DTypes: ir.Uniform(ir.BF16), Layers: 3, Hidden: 64, Intermediate: 176, Heads: 4,
			KVHeads: 2,
			HeadDim: 16, Vocab: 512},
		"llama-sharded-fp16": {DTypes: ir.Uniform(ir.F16), Layers: 3, Hidden: 64, Intermediate: 176, Heads: 4,
			KVHeads: 2,
			HeadDim: 16, Vocab: 512},
	}
	for name, m := range want {
		s, err := importModel(t, zoo+name)
		require.NoError(t, err, name)
		m.Name, m.Architecture, m.MaxSeq, m.Eps = name, "LlamaForCausalLM", 512, 1e-6
		require.Equal(t, m, s.Graph.Model, name)
		require.Len(t, s.Consumed, len(s.source.Weights.Tensors()), "%s: every tensor is accounted for", name)
		require.Empty(t, s.Warnings)
		require.Len(t, s.Graph.Kinds, 1, name)
		require.Len(t, s.Graph.Kinds[0].Nodes, 17, name)
		require.Len(t, slices.Concat(s.Graph.Before, s.Graph.After), 4, name)
		require.Equal(t, []int{0, 0, 0}, s.Graph.Layers, name)
	}
}

func TestZooRefusals(t *testing.T) {
	var refusals []modeltest.Refusal
	for _, name := range []string{"bloom", "llama-gelu"} {
		refusals = append(refusals, modeltest.Refusal{Name: name, Input: zoo + name})
	}
	modeltest.CheckRefusals(t, "testdata/zoo_refusals.golden", refusals, func(dir any) error {
		_, err := importModel(t, dir.(string))
		return err
	})
}

// edit returns a config with fields replaced, or removed where the value is remove.
type remove struct{}

func edit(base string, changes map[string]any) string {
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(base), &fields); err != nil {
		panic(err)
	}
	for k, v := range changes {
		if fields[k] = v; v == (remove{}) {
			delete(fields, k)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func importConfig(t testing.TB, config string, src Source) (*imported, error) {
	src.Config = modeltest.OpenConfig(t, config)
	return importOf(src)
}

type fieldsOf = map[string]any

func TestConfigFieldRefusals(t *testing.T) {
	llama3 := fieldsOf{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
		"original_max_position_embeddings": 8192}
	with := func(k string, v any) fieldsOf {
		m := maps.Clone(llama3)
		if m[k] = v; v == (remove{}) {
			delete(m, k)
		}
		return m
	}
	one := func(name, field string, v any) modeltest.Refusal {
		return modeltest.Refusal{Name: name, Input: fieldsOf{field: v}}
	}
	modeltest.CheckRefusals(t, "testdata/import_refusals.golden", []modeltest.Refusal{
		one("no model_type", "model_type", remove{}),
		one("unknown model_type", "model_type", "wavenet"),
		one("model_type is not a string", "model_type", 3),
		one("mistral", "model_type", "mistral"),
		one("classifier", "architectures", []string{"LlamaForSequenceClassification"}),
		one("classifier of tokens", "architectures", []string{"LlamaForTokenClassification"}),
		one("bare model", "architectures", []string{"LlamaModel"}),
		one("another decoder", "architectures", []string{"MistralForCausalLM"}),
		one("two architectures", "architectures", []string{"LlamaForCausalLM", "LlamaModel"}),
		one("architectures is a string", "architectures", "LlamaForCausalLM"),
		one("hidden_size is a string", "hidden_size", "32"),
		one("hidden_size is a fraction", "hidden_size", 32.5),
		one("hidden_size is zero", "hidden_size", 0),
		one("absurd layers", "num_hidden_layers", 1000000),
		one("kv heads do not divide", "num_key_value_heads", 3),
		one("odd head_dim", "head_dim", 7),
		one("heads do not divide hidden", "num_attention_heads", 5),
		one("eps", "rms_norm_eps", 0),
		one("bias is not a bool", "mlp_bias", "no"),
		one("gelu", "hidden_act", "gelu"),
		one("sliding_window", "sliding_window", 4096),
		one("use_sliding_window", "use_sliding_window", true),
		one("layer_types", "layer_types", []string{"full_attention", "sliding_attention"}),
		one("partial_rotary_factor", "partial_rotary_factor", 0.5),
		one("quantised", "quantization_config", fieldsOf{"quant_method": "bitsandbytes"}),
		one("mlx", "quantization", fieldsOf{"group_size": 64, "bits": 4}),
		{Name: "mlx says it twice", Input: fieldsOf{"quantization": fieldsOf{"group_size": 64, "bits": 4},
			"quantization_config": fieldsOf{"group_size": 64, "bits": 4}}},
		one("dtype", "torch_dtype", "float8_e4m3fn"),
		one("rope_interleaved", "rope_interleaved", true),
		one("repetition_penalty", "repetition_penalty", 1.1),
		one("encoder", "is_encoder_decoder", true),
		one("auto_map", "auto_map", fieldsOf{"AutoModel": "modeling_x.Model"}),
		one("field of another family", "attn_logit_softcapping", 50),
		one("unknown field", "attn_logit_sharpening", 50),
		one("rope_theta", "rope_theta", -1),
		one("rope_theta is not a float32", "rope_theta", 1e39),
		one("rope linear", "rope_scaling", fieldsOf{"type": "linear", "factor": 2.0, "beta": 32}),
		one("rope dynamic", "rope_scaling", fieldsOf{"rope_type": "dynamic", "alpha": 1000.0}),
		one("rope yarn", "rope_parameters", fieldsOf{"rope_type": "yarn", "factor": 4.0, "attention_factor": -1}),
		one("rope longrope", "rope_parameters", fieldsOf{"rope_type": "longrope", "rope_theta": 10000.0}),
		one("rope proportional", "rope_parameters", fieldsOf{"rope_type": "proportional", "factor": 0.5}),
		one("rope two types", "rope_scaling", fieldsOf{"rope_type": "llama3", "type": "linear"}),
		one("rope is a string", "rope_scaling", "llama3"),
		one("rope extra key", "rope_scaling", with("mrope_section", []int{2, 1, 1})),
		one("rope missing key", "rope_scaling", with("factor", remove{})),
		one("rope bad factor", "rope_scaling", with("factor", 0)),
		one("rope frequencies reversed", "rope_scaling", with("high_freq_factor", 0.5)),
		one("rope partial", "rope_parameters", fieldsOf{"rope_type": "default", "partial_rotary_factor": 0.25}),
		{Name: "rope spelt twice", Input: fieldsOf{"rope_scaling": llama3, "rope_parameters": with("factor", 4.0)}},
		{Name: "rope_theta twice", Input: fieldsOf{"rope_theta": 10000.0,
			"rope_parameters": fieldsOf{"rope_type": "default", "rope_theta": 500000.0}}},
		{Name: "several at once", Input: fieldsOf{"hidden_act": "relu", "use_sliding_window": true, "logit_shape": 2}},
	}, func(changes any) error {
		_, err := importConfig(t, edit(modeltest.TinyConfig, changes.(fieldsOf)), Source{})
		return err
	})
}

// The fields that real checkpoints of this family carry.
func TestRealConfigsAreAccepted(t *testing.T) {
	for name, changes := range map[string]fieldsOf{
		"Llama-2-7b": {"_name_or_path": "meta-llama/Llama-2-7b-hf", "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "initializer_range": 0.02,
			"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": nil, "torch_dtype": "float16",
			"transformers_version": "4.31.0.dev0", "use_cache": true},
		"Llama-2 as first published": {"max_sequence_length": 2048, "pad_token_id": 0, "max_length": 4096,
			"temperature": 0.9, "top_p": 0.6},
		"Llama-3.1-8B": {"attention_bias": false, "attention_dropout": 0.0, "eos_token_id": []int{128001, 128008},
			"mlp_bias": false, "rope_theta": 500000.0,
			"rope_scaling": fieldsOf{"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
				"original_max_position_embeddings": 8192, "rope_type": "llama3"}},
		"SmolLM2-135M": {"is_llama_config": true, "rope_interleaved": false, "rope_theta": 100000, "rope_scaling": nil,
			"pad_token_id":           2,
			"transformers.js_config": fieldsOf{"kv_cache_dtype": fieldsOf{"q4f16": "float16"}},
			"tie_word_embeddings":    true},
		"TinyLlama": {"rope_scaling": nil, "rope_theta": 10000.0, "attention_bias": false, "use_cache": true},
		"Yi-6B":     {"bos_token_id": 1, "rope_theta": 5000000.0, "sliding_window": nil, "pad_token_id": 0},
		"transformers 5": {"torch_dtype": remove{}, "dtype": "bfloat16", "head_dim": 8,
			"rope_parameters": fieldsOf{"rope_theta": 10000.0, "rope_type": "default"}},
		"swish": {"hidden_act": "swish"},
		"both spellings": {"rope_scaling": fieldsOf{"rope_type": "default"},
			"rope_parameters": fieldsOf{"rope_type": "default"}},
		"old and new type": {"rope_scaling": fieldsOf{"rope_type": "default", "type": "default"}},
		"layer_types":      {"layer_types": []string{"full_attention", "full_attention"}},
		"rotation in full": {"partial_rotary_factor": 1.0},
		"explicit nulls": {"head_dim": nil, "num_key_value_heads": nil, "quantization_config": nil,
			"auto_map": nil, "pretraining_tp": nil},
		"no architectures": {"architectures": remove{}},
		"old training output": {"gradient_checkpointing": false, "use_flash_attention_2": false,
			"tokenizer_class": "LlamaTokenizer"},
	} {
		_, err := importConfig(t, edit(modeltest.TinyConfig, changes), Source{})
		require.NoError(t, err, name)
	}
}

func TestConfigDefaultsAreThoseOfTransformers(t *testing.T) {
	s, err := importConfig(t, `{"model_type": "llama"}`, Source{})
	require.NoError(t, err)
	require.Equal(t, ir.Model{Architecture: "LlamaForCausalLM", DTypes: ir.Uniform(ir.BF16), Layers: 32, Hidden: 4096,
		Intermediate: 11008, Heads: 32,
		KVHeads: 32, HeadDim: 128, Vocab: 32000, MaxSeq: 2048, Eps: 1e-6}, s.Graph.Model)
}

func TestExplicitHeadDimAndDTypeAndPositions(t *testing.T) {
	f32 := ir.F32
	s, err := importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"head_dim": 48, "max_position_embeddings": 131072}),
		Source{DType: &f32})
	require.NoError(t, err)
	require.Equal(t, 48, s.Graph.Model.HeadDim)
	require.Equal(t, ir.F32, s.Graph.Model.Weights)
	require.Equal(t, DefaultMaxSeq, s.Graph.Model.MaxSeq)
	require.Len(t, s.Graph.Rope.InvFreq, 24)

	s, err = importConfig(t, modeltest.TinyConfig, Source{MaxSeq: 100})
	require.NoError(t, err)
	require.Equal(t, 100, s.Graph.Model.MaxSeq)
	require.ErrorContains(t, s.Warnings[0], "--max-seq 100 is more than the 64 positions")
	_, err = importConfig(t, modeltest.TinyConfig, Source{MaxSeq: -1})
	require.ErrorContains(t, err, "AMK1116")
}

// Whatever a config says, import answers with a graph or with diagnostics.
func FuzzImportConfig(f *testing.F) {
	f.Add(modeltest.TinyConfig)
	f.Add(modeltest.PlainConfig)
	f.Add(`{"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, ` +
		`"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}`)
	f.Add(`{"model_type": "llama", "rope_parameters": {"rope_type": "yarn", "factor": null, "beta_fast": 4, ` +
		`"mscale": 1, "mscale_all_dim": 0.5, "truncate": false, "original_max_position_embeddings": 512}}`)
	f.Add(`{"model_type": "mistral", "rope_scaling": {"type": "dynamic", "factor": 2.5}, "sliding_window": null}`)
	f.Add(`{"model_type": "phi3", "partial_rotary_factor": 0.5, "num_attention_heads": 384, "rope_scaling": {"type": ` +
		`"su", "short_factor": [1, 2], "long_factor": [3, 4]}, "original_max_position_embeddings": 64}`)
	for _, config := range []string{qwen3MoEConfig, glm4MoEConfig, dots1Config, ernie45MoEConfig, phiMoEConfig,
		gptOSSConfig} {
		f.Add(config)
	}
	f.Add(`{"model_type": "llama", "head_dim": 1e9, "rope_theta": 1e308, "num_hidden_layers": -0, "layer_types": [[]]}`)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, config string) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644))
		c, err := checkpoint.OpenConfig(dir)
		if err != nil {
			return
		}
		s, err := Import(Source{Name: "fuzz", Config: c})
		if err != nil {
			require.Contains(t, err.Error(), "[AMK1")
			return
		}
		require.NotEmpty(t, s.Graph.Rope.InvFreq)
		require.LessOrEqual(t, s.Graph.Rope.Turned(), s.Graph.Model.HeadDim)
		require.Positive(t, s.Graph.Model.MaxSeq)
	})
}
