package importers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

const qwen3MoEConfig = `{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 64,
	"intermediate_size": 96, "moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 2,
	"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"max_position_embeddings": 512, "hidden_act": "silu"}`

const gptOSSConfig = `{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 64,
	"intermediate_size": 24, "num_local_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 4,
	"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"max_position_embeddings": 512}`

// Which layers have experts, and what contradicts itself or is not modelled.
func TestExperts(t *testing.T) {
	dense := ir.LayerFacts{Intermediate: 96, Heads: 4, KVHeads: 2, HeadDim: 24}
	sparse := dense
	sparse.Intermediate, sparse.Experts, sparse.PerToken = 24, 8, 2
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
			changes: fieldsOf{"quantization_config": fieldsOf{"quant_method": "mxfp4"}},
			refusal: `the weights are quantised as "mxfp4": MXFP4 has elements of e2m1`},
		"quantised": {changes: fieldsOf{"quantization_config": fieldsOf{"quant_method": "gptq", "bits": 4,
			"group_size": 128, "desc_act": false, "sym": true}},
			refusal: `has the method "gptq", and matrices of experts are read in 16`},
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
