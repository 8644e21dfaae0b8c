package importers

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
)

const qwen3MoEConfig = `{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 64,
	"intermediate_size": 96, "moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 2,
	"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"max_position_embeddings": 512, "hidden_act": "silu"}`

const glm4MoEConfig = `{"architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "hidden_size": 64,
	"intermediate_size": 96, "moe_intermediate_size": 24, "n_routed_experts": 8, "num_experts_per_tok": 2,
	"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"n_group": 4, "topk_group": 2, "max_position_embeddings": 512}`

const dots1Config = `{"architectures": ["Dots1ForCausalLM"], "model_type": "dots1", "hidden_size": 64,
	"intermediate_size": 96, "moe_intermediate_size": 24, "n_routed_experts": 8, "num_experts_per_tok": 2,
	"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"max_position_embeddings": 512}`

const ernie45MoEConfig = `{"architectures": ["Ernie4_5_MoeForCausalLM"], "model_type": "ernie4_5_moe",
	"hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 24, "moe_num_experts": 8, "moe_k": 2,
	"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"max_position_embeddings": 512}`

const phiMoEConfig = `{"architectures": ["PhimoeForCausalLM"], "model_type": "phimoe", "hidden_size": 64,
	"intermediate_size": 24, "num_local_experts": 8, "num_hidden_layers": 4, "num_attention_heads": 4,
	"num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128, "max_position_embeddings": 512}`

const gptOSSConfig = `{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 64,
	"intermediate_size": 24, "num_local_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 4,
	"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"max_position_embeddings": 512}`

// Which layers have experts, and what contradicts itself or is not modelled.
func TestExperts(t *testing.T) {
	dense := ir.LayerFacts{Intermediate: 96, Heads: 4, KVHeads: 2, HeadDim: 24}
	sparse := dense
	sparse.Intermediate, sparse.Experts, sparse.PerToken = 24, 8, 2
	shared, two := sparse, sparse // with one that every token has, and with two, which are one twice as wide
	shared.Shared, two.Shared = 24, 48
	for name, c := range map[string]struct {
		base    string
		changes fieldsOf
		want    []ir.LayerFacts // of the layers
		refusal string          // instead
	}{
		"all": {want: []ir.LayerFacts{sparse, sparse, sparse, sparse}},
		"but one": {changes: fieldsOf{"mlp_only_layers": []any{1}},
			want: []ir.LayerFacts{sparse, dense, sparse, sparse}},
		"every other": {changes: fieldsOf{"decoder_sparse_step": 2},
			want: []ir.LayerFacts{dense, sparse, dense, sparse}},
		"null lists none": {changes: fieldsOf{"mlp_only_layers": nil},
			want: []ir.LayerFacts{sparse, sparse, sparse, sparse}},
		"by another name": {changes: fieldsOf{"num_experts": nil, "num_local_experts": 8},
			want: []ir.LayerFacts{sparse}},
		"by both names": {changes: fieldsOf{"num_local_experts": 8}, want: []ir.LayerFacts{sparse}},
		"names disagree": {changes: fieldsOf{"num_local_experts": 4},
			refusal: "num_local_experts: error: is 4, and num_experts 8"},
		"more than all": {changes: fieldsOf{"num_experts_per_tok": 9},
			refusal: "is 9; want at most the 8 experts"},
		"none of a token": {changes: fieldsOf{"num_experts_per_tok": 0},
			refusal: "is 0; want an integer from 1 to 256"},
		"none": {changes: fieldsOf{"num_experts": 0},
			refusal: "is 0; want an integer from 1 to 4096"},
		"no list": {changes: fieldsOf{"mlp_only_layers": 1},
			refusal: "want a list of numbers of layers"},
		"layers as text": {changes: fieldsOf{"mlp_only_layers": []any{"1"}},
			refusal: "want a list of numbers of layers"},
		"another gate": {changes: fieldsOf{"hidden_act": "gelu"}, refusal: `"gelu" is not modelled`},
		"unknown":      {changes: fieldsOf{"n_group": 2}, refusal: "n_group: error: is not a field"},
		"gpt-oss":      {base: gptOSSConfig, want: []ir.LayerFacts{sparse, sparse, sparse, sparse}},
		"no limit": {base: gptOSSConfig, changes: fieldsOf{"swiglu_limit": 0},
			refusal: "swiglu_limit: error: is 0; want a number"},
		"a limit of words": {base: gptOSSConfig, changes: fieldsOf{"swiglu_alpha": "x"},
			refusal: `swiglu_alpha: error: is "x"`},
		"as it is shipped": {base: gptOSSConfig,
			changes: fieldsOf{"intermediate_size": 32, "quantization_config": fieldsOf{"quant_method": "mxfp4"}},
			want:    []ir.LayerFacts{{Intermediate: 32, Heads: 4, KVHeads: 2, HeadDim: 24, Experts: 8, PerToken: 2}}},
		"others in its blocks": {changes: fieldsOf{"quantization_config": fieldsOf{"quant_method": "mxfp4"}},
			refusal: `has the method "mxfp4", in which amkc reads the experts of gpt-oss alone`},
		"a first layer without": {base: glm4MoEConfig, want: []ir.LayerFacts{dense, shared, shared, shared}},
		"two without": {base: glm4MoEConfig, changes: fieldsOf{"first_k_dense_replace": 2},
			want: []ir.LayerFacts{dense, dense, shared, shared}},
		"by a name of attributes": {base: glm4MoEConfig,
			changes: fieldsOf{"n_routed_experts": nil, "num_local_experts": 8}, want: []ir.LayerFacts{dense, shared}},
		"groups that differ": {base: glm4MoEConfig, changes: fieldsOf{"n_group": 3},
			refusal: "n_group: error: is 3, and topk_group 2, for 2 of 8 experts"},
		"groups of one": {base: glm4MoEConfig, changes: fieldsOf{"n_group": 8},
			refusal: "want groups of as many experts, at least two"},
		"too few in the groups": {base: glm4MoEConfig, changes: fieldsOf{"num_experts_per_tok": 5},
			refusal: "is 4, and topk_group 2, for 5 of 8 experts"},
		"more groups than there are": {base: glm4MoEConfig, changes: fieldsOf{"topk_group": 5},
			refusal: "is 4, and topk_group 5"},
		"shared ones of more than an MLP has": {base: glm4MoEConfig, changes: fieldsOf{"moe_intermediate_size": 4096,
			"n_shared_experts": 4096}, refusal: "n_shared_experts: error: makes an MLP of 16777216"},
		"shared ones beyond an int": {base: ernie45MoEConfig,
			changes: fieldsOf{"moe_num_shared_experts": 6004799503160662},
			refusal: "want an integer from 0 to 2147483647"},
		"a billion shared ones": {base: ernie45MoEConfig, changes: fieldsOf{"moe_num_shared_experts": 1 << 30},
			refusal: "moe_num_shared_experts: error: makes an MLP"},
		"none that every token has": {base: ernie45MoEConfig, changes: fieldsOf{"moe_num_shared_experts": 0},
			want: []ir.LayerFacts{dense, sparse}},
		"shared ones that the class has no number for": {base: dots1Config,
			refusal: "n_shared_experts: error: is missing"},
		"an interval of layers": {base: ernie45MoEConfig,
			changes: fieldsOf{"moe_layer_start_index": 1, "moe_layer_end_index": 2},
			want:    []ir.LayerFacts{dense, two, two, dense}},
		"every other of them": {base: ernie45MoEConfig,
			changes: fieldsOf{"moe_layer_start_index": 0, "moe_layer_interval": 2},
			want:    []ir.LayerFacts{dense, two, dense, two}},
		"two, whatever the config says": {base: phiMoEConfig, changes: fieldsOf{"num_experts_per_tok": 3},
			want: []ir.LayerFacts{sparse, sparse, sparse, sparse}},
		"beyond what it was trained for": {base: phiMoEConfig, changes: fieldsOf{"rope_scaling": fieldsOf{
			"type": "longrope", "original_max_position_embeddings": 256, "short_mscale": 1.25, "long_mscale": 1.5,
			"short_factor": slices.Repeat([]any{1.5}, 12), "long_factor": slices.Repeat([]any{2}, 12)}},
			refusal: "want --max-seq 256 or less"},
		"a scale of longer texts alone": {base: phiMoEConfig, changes: fieldsOf{"max_position_embeddings": 256,
			"rope_scaling": fieldsOf{"type": "longrope", "original_max_position_embeddings": 256, "long_mscale": 1.5,
				"short_factor": slices.Repeat([]any{1.5}, 12), "long_factor": slices.Repeat([]any{2}, 12)}},
			refusal: "rope_scaling.short_mscale: error: is null"},
		"quantised": {changes: fieldsOf{"quantization_config": fieldsOf{"quant_method": "gptq", "bits": 4,
			"group_size": 128, "desc_act": false, "sym": true}}, want: []ir.LayerFacts{sparse}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.base == "" {
				c.base = qwen3MoEConfig
			}
			s, err := importConfig(t, edit(c.base, c.changes), Source{})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				require.Equal(t, 1, strings.Count(err.Error(), "error:"), "said once: %v", err)
				return
			}
			require.NoError(t, err)
			for layer, want := range c.want {
				require.Equal(t, want, *s.Graph.Model.Of(layer), "layer %d", layer)
			}
			p, err := LowerGraph(s.Graph)
			require.NoError(t, err)
			require.Empty(t, ir.Check(p))
		})
	}
}

// What is added to scores for the choice alone is not rounded to the type of the weights.
func TestChoosingBiasIsNotRounded(t *testing.T) {
	for _, config := range []string{glm4MoEConfig, ernie45MoEConfig} {
		s, err := importConfig(t, edit(config, fieldsOf{"torch_dtype": "bfloat16"}), Source{})
		require.NoError(t, err)
		p, err := LowerGraph(s.Graph)
		require.NoError(t, err)
		found := 0
		for _, b := range p.Buffers {
			if b.Kind == ir.Weight && strings.HasSuffix(b.Name, ".choosing.weight") {
				require.Equal(t, ir.F32, b.DType)
				found++
			} else if b.Kind == ir.Weight {
				require.Equal(t, ir.BF16, b.DType, b.Name)
			}
		}
		require.NotZero(t, found)
	}
}

// Layers that only speculation runs are left out: their tensors are in the files, and nothing reads them.
func TestDraftingLayersAreLeftOut(t *testing.T) {
	config := modeltest.OpenConfig(t, edit(glm4MoEConfig, fieldsOf{"num_nextn_predict_layers": 2}))
	m := &importer{fields: &fields{doc: config.Model}, names: plainNames}
	m.leaveDrafting(&decoder{drafting: draftingLayers}, 46)
	require.Equal(t, []string{"model.layers.46.", "model.layers.47."}, m.leftOut)
	for _, family := range []string{"qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"} {
		config := string(readFlips(t, family).Bases[0].Config)
		tensors := plainTensors(t, config)
		tensors["mtp.layers.0.mlp.gate.weight"] = modeltest.Stored{DType: "I64", Shape: []int{1}, Data: make([]byte, 8)}
		s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
		require.NoError(t, err, family)
		require.Len(t, s.Consumed, len(tensors), family)
	}
}

// A router whose matrix transformers keeps in float32 is rounded with a warning, where the files have more bits.
func TestRoutersAreRoundedWithAWarning(t *testing.T) {
	const all = "the matrices of 1 router are rounded to"
	for name, c := range map[string]struct {
		config, dtype, stored, want string
	}{
		"16 of 32 bits": {edit(glm4MoEConfig, fieldsOf{"num_hidden_layers": 2}), "bfloat16", "F32", all},
		"fp16":          {edit(ernie45MoEConfig, fieldsOf{"num_hidden_layers": 2}), "float16", "F32", all},
		"stored so":     {edit(glm4MoEConfig, fieldsOf{"num_hidden_layers": 2}), "bfloat16", "BF16", ""},
		"of 32 bits":    {edit(glm4MoEConfig, fieldsOf{"num_hidden_layers": 2}), "float32", "F32", ""},
		"as others":     {edit(qwen3MoEConfig, fieldsOf{"num_hidden_layers": 2}), "bfloat16", "F32", ""},
	} {
		config := edit(c.config, fieldsOf{"torch_dtype": c.dtype})
		tensors := plainTensors(t, config)
		for key, w := range tensors {
			if strings.HasSuffix(key, "mlp.gate.weight") && c.stored == "BF16" {
				w.DType, w.Data = c.stored, w.Data[:len(w.Data)/2]
				tensors[key] = w
			}
		}
		s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
		require.NoError(t, err, name)
		if c.want == "" {
			require.Empty(t, s.Warnings, name)
			continue
		}
		require.Len(t, s.Warnings, 1, name)
		require.ErrorContains(t, s.Warnings[0], c.want, name)
		require.ErrorContains(t, s.Warnings[0], "tensor model.layers.1.mlp.gate.weight: ", name)
	}
}
