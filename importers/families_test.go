package importers

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/passes/rewrite"
)

const qwen2Config = `{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
	"vocab_size": 128, "max_position_embeddings": 512, "hidden_act": "silu"}`

const qwen3Config = `{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
	"head_dim": 24, "vocab_size": 128, "max_position_embeddings": 512, "hidden_act": "silu"}`

const ministralConfig = `{"architectures": ["MinistralForCausalLM"], "model_type": "ministral", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 128,
	"max_position_embeddings": 512, "num_key_value_heads": 2}`

const phi3Config = `{"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
	"vocab_size": 128, "max_position_embeddings": 512, "original_max_position_embeddings": 512}`

const mistralConfig = `{"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 128,
	"max_position_embeddings": 512, "num_key_value_heads": 2}`

// What attention sees, layer by layer where they differ, and which windows are refused.
func TestWindows(t *testing.T) {
	kinds := func(kinds ...any) []any { return kinds }
	const full, sliding = fullAttention, slidingAttention
	const all, last16 = "0:pos", "max(0,pos-15):pos"
	for name, c := range map[string]struct {
		base    string
		changes fieldsOf
		maxSeq  int
		want    string // rows of the cache that a layer looks at
		refusal string // instead
	}{
		"none in qwen2":   {base: qwen2Config, want: "0:pos"},
		"unused in qwen2": {base: qwen2Config, changes: fieldsOf{"sliding_window": 16}, want: "0:pos"},
		"of no layer": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 3}, want: "0:pos"},
		"of all layers": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 0,
				"layer_types": kinds(sliding, sliding, sliding)}, want: "max(0,pos-15):pos"},
		"of the last layer": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2},
			want:    all + " " + all + " " + last16},
		"listed": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2,
				"layer_types": kinds(full, full, sliding)},
			want: all + " " + all + " " + last16},
		"of the last layer, and not reached": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2},
			maxSeq:  16, want: "0:pos"},
		"of the last layer, and reached": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2},
			maxSeq:  17, want: all + " " + all + " " + last16},
		"listed otherwise": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2,
				"layer_types": kinds(full, sliding, full)}, want: all + " " + last16 + " " + all},
		"listed for too few": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16,
				"layer_types": kinds(full, sliding)}, refusal: "accepted: a list of 3, each"},
		"listed as another kind": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16,
				"layer_types": kinds(full, sliding, "linear_attention")}, refusal: "accepted: a list of 3, each"},
		"listed without use": {base: qwen2Config,
			changes: fieldsOf{"layer_types": kinds(full, full, sliding)}, refusal: "layers of other kinds"},
		"as wide as the positions": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 64, "max_window_layers": 0},
			maxSeq:  64, want: "0:pos"},
		"one less than the positions": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 64, "max_window_layers": 0},
			maxSeq:  65, want: "max(0,pos-63):pos"},
		"default of qwen2": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "max_window_layers": 0, "max_position_embeddings": 32768},
			maxSeq:  8192, want: "max(0,pos-4095):pos"},
		"null in qwen2": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "max_window_layers": 0, "sliding_window": nil},
			want:    "0:pos"},
		"layers below 0": {base: qwen2Config,
			changes: fieldsOf{"use_sliding_window": true, "max_window_layers": -1},
			refusal: "want an integer from 0 to 2147483647"},
		"none in qwen3": {base: qwen3Config, want: "0:pos"},
		"of qwen3's last layer": {base: qwen3Config,
			changes: fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2,
				"layer_types": kinds(full, full, sliding)}, want: all + " " + all + " " + last16},
		"unused in qwen3": {base: qwen3Config,
			changes: fieldsOf{"sliding_window": 16, "layer_types": kinds(full, full, full)}, want: "0:pos"},
		"absent in mistral": {base: mistralConfig,
			changes: fieldsOf{"max_position_embeddings": 32768}, maxSeq: 8192, want: "max(0,pos-4095):pos"},
		"absent and not reached": {base: mistralConfig, want: "0:pos"},
		"null in mistral": {base: mistralConfig,
			changes: fieldsOf{"sliding_window": nil, "max_position_embeddings": 32768}, maxSeq: 8192, want: "0:pos"},
		"narrow in mistral": {base: mistralConfig,
			changes: fieldsOf{"sliding_window": 100}, want: "max(0,pos-99):pos"},
		"narrowest": {base: mistralConfig, changes: fieldsOf{"sliding_window": 1}, want: "max(0,pos):pos"},
		"listed in mistral": {base: mistralConfig,
			changes: fieldsOf{"sliding_window": 100, "layer_types": kinds(sliding, sliding, sliding)},
			want:    "max(0,pos-99):pos"},
		"listed as full in mistral": {base: mistralConfig,
			changes: fieldsOf{"sliding_window": 100, "layer_types": kinds(full, full, full)},
			refusal: `accepted: "sliding_attention" throughout`},
		"absent in ministral": {base: ministralConfig, changes: fieldsOf{"max_position_embeddings": 32768},
			maxSeq: 8192, want: "max(0,pos-4095):pos"},
		"null in ministral": {base: ministralConfig, changes: fieldsOf{"sliding_window": nil}, want: "0:pos"},
		"unlisted in ministral": {base: ministralConfig, changes: fieldsOf{"sliding_window": 16},
			want: "max(0,pos-15):pos"},
		"listed in ministral": {base: ministralConfig, changes: fieldsOf{"sliding_window": 16,
			"layer_types": kinds(full, sliding, sliding)}, want: all + " " + last16 + " " + last16},
		"none in phi3":   {base: phi3Config, want: "0:pos"},
		"narrow in phi3": {base: phi3Config, changes: fieldsOf{"sliding_window": 100}, want: "max(0,pos-99):pos"},
		"null in phi3":   {base: phi3Config, changes: fieldsOf{"sliding_window": nil}, want: "0:pos"},
		"none": {base: mistralConfig, changes: fieldsOf{"sliding_window": 0},
			refusal: "want an integer from 1"},
		"no number": {base: mistralConfig,
			changes: fieldsOf{"sliding_window": "wide"}, refusal: `is "wide"; want an integer from 1`},
		"biases of mistral": {base: mistralConfig,
			changes: fieldsOf{"attention_bias": true}, refusal: "is true, which is not modelled"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(c.base, c.changes), Source{MaxSeq: c.maxSeq})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			require.Equal(t, cmp.Or(c.maxSeq, 512), s.Graph.Model.MaxSeq)
			require.Empty(t, s.Warnings)
			p, err := LowerGraph(s.Graph)
			require.NoError(t, err)
			seen := make([]string, s.Graph.Model.Layers)
			rewrite.EachStage(&p.Variants[0], func(st *ir.Stage, loop *ir.Loop) {
				for _, o := range st.Ops {
					if o.Code != ir.ATTENTION {
						continue
					}
					for _, layer := range rewrite.Indices(st, loop) {
						seen[layer] = o.In[1].Dims[1].String()
					}
				}
			})
			require.Equal(t, c.want, spellSeen(seen))
		})
	}
}

// Which projections have biases.
func TestBiases(t *testing.T) {
	const heads, mlp = "q_proj k_proj v_proj", "gate_proj up_proj down_proj"
	for name, c := range map[string]struct {
		base    string
		changes fieldsOf
		want    string
	}{
		"llama":            {modeltest.TinyConfig, nil, ""},
		"llama, attention": {modeltest.TinyConfig, fieldsOf{"attention_bias": true}, heads + " o_proj"},
		"llama, MLP":       {modeltest.TinyConfig, fieldsOf{"mlp_bias": true}, mlp},
		"llama, both": {modeltest.TinyConfig, fieldsOf{"attention_bias": true, "mlp_bias": true},
			heads + " o_proj " + mlp},
		"mistral":             {mistralConfig, nil, ""},
		"qwen2":               {qwen2Config, nil, heads},
		"qwen2 does not read": {qwen2Config, fieldsOf{"attention_bias": false, "mlp_bias": true}, heads},
		"qwen3":               {qwen3Config, nil, ""},
		"qwen3, attention":    {qwen3Config, fieldsOf{"attention_bias": true, "mlp_bias": true}, heads + " o_proj"},
	} {
		s, err := importConfig(t, edit(c.base, c.changes), Source{})
		require.NoError(t, err, name)
		var biased []string
		for _, n := range s.Graph.Kinds[0].Nodes {
			if n.Op == "linear" && len(n.Weights) > 1 {
				biased = append(biased, n.Name)
				require.Equal(t, n.Shape, n.Weights[1].Shape)
			}
		}
		require.Equal(t, c.want, strings.Join(biased, " "), name)
	}
}

// What absent fields mean is what the family's class says, not what Llama's does.
func TestDefaultsOfFamilies(t *testing.T) {
	for _, c := range []struct {
		config string
		want   ir.Model
	}{
		{`{"model_type": "qwen2"}`, ir.Model{Architecture: "Qwen2ForCausalLM", Layers: 32, Hidden: 4096,
			Intermediate: 22016, Heads: 32, KVHeads: 32, HeadDim: 128, Vocab: 151936}},
		{`{"model_type": "qwen3", "hidden_size": 1000}`, ir.Model{Architecture: "Qwen3ForCausalLM", Layers: 32,
			Hidden: 1000, Intermediate: 22016, Heads: 32, KVHeads: 32, HeadDim: 128, Vocab: 151936}},
		{`{"model_type": "ministral"}`, ir.Model{Architecture: "MinistralForCausalLM", Layers: 32, Hidden: 4096,
			Intermediate: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 32000}},
		{`{"model_type": "mistral"}`, ir.Model{Architecture: "MistralForCausalLM", Layers: 32, Hidden: 4096,
			Intermediate: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 32000}},
	} {
		s, err := importConfig(t, c.config, Source{MaxSeq: 64})
		require.NoError(t, err)
		c.want.DTypes, c.want.MaxSeq, c.want.Eps = ir.Uniform(ir.BF16), 64, 1e-6
		require.Equal(t, c.want, s.Graph.Model)
	}
}

// README.md and amkc explain name every family, and there is a small model of it.
func TestFamiliesAreListed(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	small := map[string]bool{}
	models, err := os.ReadDir(zoo)
	require.NoError(t, err)
	for _, m := range models {
		c, err := checkpoint.OpenConfig(zoo + m.Name())
		require.NoError(t, err)
		kind, _ := c.Model.Get("model_type")
		small[fmt.Sprint(kind)] = true
	}
	for _, f := range Families {
		name := f.ModelType
		require.True(t, small[name], "want a model of model_type %q in testdata/models/zoo", name)
		require.True(t, strings.Contains(string(readme), "| `"+name+"` |"),
			"%s: want a row of the table Which models of README.md", name)
		require.Contains(t, codeModelType.Doc, `"`+name+`"`, "want it in the text of AMK1101 in codes.go")
	}
}

// Configs with all the fields that published ones carry are imported without a word from the user, or refused for a
// reason. Seven are no copies of published files (testdata/configs/README.md says which): of these the test says
// nothing about a field that only the files have.
func TestConfigsAsPublished(t *testing.T) {
	refused := map[string]string{
		"opt-350m": "do_layer_norm_before: error: is false",
	}
	dir := filepath.Join("..", "testdata", "configs", "as_published")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Greater(t, len(files), 40)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		require.NoError(t, err)
		name := strings.TrimSuffix(file.Name(), ".json")
		_, err = Import(Source{Name: name, Config: modeltest.OpenConfig(t, string(text))})
		if want, is := refused[name]; is {
			require.ErrorContains(t, err, want, name)
			continue
		}
		require.NoError(t, err, name)
	}
}

// Configs as they are published.
func TestPublishedForms(t *testing.T) {
	for config, want := range map[string]ir.Model{
		`{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
			"eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 3584, "initializer_range": 0.02,
			"intermediate_size": 18944, "max_position_embeddings": 32768, "max_window_layers": 28,
			"model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
			"rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.43.1", "use_cache": true,
			"use_sliding_window": false, "vocab_size": 152064}`: {Architecture: "Qwen2ForCausalLM", Layers: 28,
			Hidden: 3584, Intermediate: 18944, Heads: 28, KVHeads: 4, HeadDim: 128, Vocab: 152064, Eps: 1e-6},
		`{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
			"hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
			"max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
			"num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
			"use_sliding_window": false, "vocab_size": 151936}`: {Architecture: "Qwen3ForCausalLM", Layers: 28,
			Hidden: 1024, Intermediate: 3072, Heads: 16, KVHeads: 8, HeadDim: 128, Vocab: 151936, Eps: 1e-6,
			Tied: true},
		`{"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
			"max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
			"num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
			"sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.42.0.dev0", "use_cache": true, "vocab_size": 32768}`: {
			Architecture: "MistralForCausalLM", Layers: 32, Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8,
			HeadDim: 128, Vocab: 32768, Eps: 1e-5},
		`{"_name_or_path": "Phi-3-mini-4k-instruct", "architectures": ["Phi3ForCausalLM"], "attention_bias": false,
			"attention_dropout": 0.0, "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config",
			"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}, "bos_token_id": 1, "embd_pdrop": 0.0,
			"eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02,
			"intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3",
			"num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
			"original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.40.2",
			"use_cache": true, "vocab_size": 32064}`: {Architecture: "Phi3ForCausalLM", Layers: 32, Hidden: 3072,
			Intermediate: 8192, Heads: 32, KVHeads: 32, HeadDim: 96, Vocab: 32064, Eps: 1e-5},
		`{"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 100257, "embd_pdrop": 0.0, "eos_token_id": 100265, "hidden_act": "silu",
			"hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 17920,
			"max_position_embeddings": 16384, "model_type": "phi3", "num_attention_heads": 40,
			"num_hidden_layers": 40, "num_key_value_heads": 10, "original_max_position_embeddings": 16384,
			"pad_token_id": 100349, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": null,
			"rope_theta": 250000, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.47.0", "use_cache": true, "vocab_size": 100352}`: {
			Architecture: "Phi3ForCausalLM", Layers: 40, Hidden: 5120, Intermediate: 17920, Heads: 40, KVHeads: 10,
			HeadDim: 128, Vocab: 100352, Eps: 1e-5},
	} {
		s, err := importConfig(t, config, Source{MaxSeq: 4096})
		require.NoError(t, err)
		want.DTypes, want.MaxSeq = ir.Uniform(ir.BF16), 4096
		require.Equal(t, want, s.Graph.Model)
		require.Empty(t, s.Warnings)
	}
}

// Mistrals whose heads are not hidden_size together, and one whose window is as long as it may be by default.
func TestPublishedMistrals(t *testing.T) {
	for name, want := range map[string]ir.Model{
		"mistral-nemo-12b":  {Layers: 40, Hidden: 5120, Intermediate: 14336},
		"mistral-small-24b": {Layers: 40, Hidden: 5120, Intermediate: 32768},
		"ministral-8b":      {Layers: 36, Hidden: 4096, Intermediate: 12288},
	} {
		text, err := os.ReadFile("../testdata/configs/" + name + "/config.json")
		require.NoError(t, err)
		s, err := importConfig(t, string(text), Source{MaxSeq: 32768})
		require.NoError(t, err)
		require.Empty(t, s.Warnings)
		want.Architecture, want.Heads, want.KVHeads, want.HeadDim = "MistralForCausalLM", 32, 8, 128
		want.Vocab, want.MaxSeq, want.Eps, want.DTypes = 131072, 32768, 1e-5, ir.Uniform(ir.BF16)
		require.Equal(t, want, s.Graph.Model)
		require.Len(t, s.Graph.Kinds, 1)
		require.Equal(t, fullAttention, s.Graph.Kinds[0].Name)
	}
}

// A Qwen3 normalises heads before it rotates them, with a weight for each of the two norms of a layer.
func TestNormsOfHeads(t *testing.T) {
	s, err := importModel(t, zoo+"qwen3-qknorm")
	require.NoError(t, err)
	require.Len(t, s.Consumed, len(s.source.Weights.Tensors()), "every tensor is accounted for")
	require.Len(t, s.Graph.Kinds, 1)
	require.Len(t, s.Graph.Kinds[0].Nodes, 19)
	for _, n := range s.Graph.Kinds[0].Nodes {
		switch n.Name {
		case "q_norm":
			require.Equal(t, ir.GraphNode{Name: "q_norm", Op: "rmsnorm", Inputs: []string{"q_proj"},
				Weights: []ir.GraphWeight{{Key: "model.layers.{i}.self_attn.q_norm.weight", Shape: []int{64}}},
				Params:  []ir.Param{ir.FloatParam("eps", 1e-6), ir.IntParam("head_dim", ir.Int(64))},
				Shape:   []int{256}}, n)
		case "k_rope":
			require.Equal(t, []string{"k_norm"}, n.Inputs)
		}
	}
}

// spellSeen is what layers see: one for all if it is the same.
func spellSeen(layers []string) string {
	if all := slices.Compact(slices.Clone(layers)); len(all) == 1 {
		return all[0]
	}
	return strings.Join(layers, " ")
}
