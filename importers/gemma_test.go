package importers

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

const gemmaConfig = `{"architectures": ["GemmaForCausalLM"], "model_type": "gemma", "hidden_size": 60,
	"intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1,
	"head_dim": 24, "vocab_size": 128, "max_position_embeddings": 512}`

// What a Gemma's fields mean, and which values are refused.
func TestFieldsOfGemma(t *testing.T) {
	for name, c := range map[string]struct {
		changes fieldsOf
		refusal string // "" for none
	}{
		"as it is":                   {},
		"gelu means its tanh form":   {changes: fieldsOf{"hidden_act": "gelu"}},
		"the tanh form by name":      {changes: fieldsOf{"hidden_act": "gelu_pytorch_tanh"}},
		"the same by its other name": {changes: fieldsOf{"hidden_act": "gelu_new"}},
		"null is the default":        {changes: fieldsOf{"hidden_act": nil}},
		"another activation": {changes: fieldsOf{"hidden_act": "silu"},
			refusal: `"silu" is not modelled; accepted: "gelu",`},
		"activation of former configs": {changes: fieldsOf{"hidden_act": "gelu", "hidden_activation": nil}},
		"the same stated":              {changes: fieldsOf{"hidden_activation": "gelu_pytorch_tanh"}},
		"another one in former configs": {changes: fieldsOf{"hidden_activation": "gelu"},
			refusal: `the activation may be another one, which is not modelled; accepted: "gelu_pytorch_tanh"`},
		"biases":    {changes: fieldsOf{"attention_bias": true}},
		"no biases": {changes: fieldsOf{"attention_bias": false}},
		"both directions": {changes: fieldsOf{"use_bidirectional_attention": true},
			refusal: "attends to those after it"},
		"one direction": {changes: fieldsOf{"use_bidirectional_attention": nil}},
		"a window": {changes: fieldsOf{"sliding_window": 16},
			refusal: "a Gemma has no windows; accepted: null"},
		"capped logits": {changes: fieldsOf{"final_logit_softcapping": 30.0}, refusal: "logits are capped"},
		"layers of two kinds": {changes: fieldsOf{"layer_types": []any{"full_attention", "sliding_attention"}},
			refusal: "layers of other kinds"},
		"an embedding and a head": {changes: fieldsOf{"tie_word_embeddings": false}},
		"another class": {changes: fieldsOf{"architectures": []any{"GemmaForSequenceClassification"}},
			refusal: "it classifies a text"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(gemmaConfig, c.changes), Source{})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			_, untied := c.changes["tie_word_embeddings"]
			require.Equal(t, !untied, s.Graph.Model.Tied)
			require.Contains(t, ops(s.Graph.Kinds[0].Nodes), "gelu_tanh_mul")
			biases := 0
			for w := range s.Graph.Weights() {
				if strings.HasPrefix(w.Key, "model.layers.0.") && strings.HasSuffix(w.Key, ".bias") {
					biases++
				}
			}
			require.Equal(t, map[bool]int{true: 4}[c.changes["attention_bias"] == true], biases)
		})
	}
}

// The scale of the embedding is the root of hidden_size, rounded to the dtype of the embedding. Norms multiply by
// 1 + w.
func TestScaleAndOffsetOfGemma(t *testing.T) {
	for dtype, want := range map[ir.DType]float64{ir.F32: float64(float32(math.Sqrt(60))), ir.BF16: 7.75,
		ir.F16: 7.74609375} {
		s, err := importConfig(t, gemmaConfig, Source{DType: &dtype})
		require.NoError(t, err)
		embed := s.Graph.Before[0]
		require.Equal(t, "embed", embed.Op)
		require.Equal(t, want, embed.FloatOr("scale", 0), dtype)
		norms := 0
		for _, nodes := range [][]ir.GraphNode{s.Graph.Kinds[0].Nodes, s.Graph.After} {
			for _, n := range nodes {
				if n.Op == "rmsnorm" {
					require.Equal(t, 1, n.IntOr("unit_offset", 0), n.Name)
					norms++
				}
			}
		}
		require.Equal(t, 3, norms)
	}
}

// A Gemma's config as it was published, and one without sizes.
func TestConfigsOfGemma(t *testing.T) {
	for config, want := range map[string]ir.Model{
		`{"architectures": ["GemmaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 2,
			"eos_token_id": 1, "head_dim": 256, "hidden_act": "gelu", "hidden_activation": null, "hidden_size": 2048,
			"initializer_range": 0.02, "intermediate_size": 16384, "max_position_embeddings": 8192,
			"model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1,
			"pad_token_id": 0, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0,
			"torch_dtype": "bfloat16", "transformers_version": "4.38.0.dev0", "use_cache": true,
			"vocab_size": 256000}`: {Layers: 18, Hidden: 2048, Intermediate: 16384, Heads: 8, KVHeads: 1},
		`{"model_type": "gemma"}`: {Layers: 28, Hidden: 3072, Intermediate: 24576, Heads: 16, KVHeads: 16},
	} {
		s, err := importConfig(t, config, Source{MaxSeq: 4096})
		require.NoError(t, err)
		want.Architecture, want.DTypes, want.MaxSeq, want.Eps = "GemmaForCausalLM", ir.Uniform(ir.BF16), 4096, 1e-6
		want.HeadDim, want.Vocab, want.Tied = 256, 256000, true
		require.Equal(t, want, s.Graph.Model)
		require.Empty(t, s.Warnings)
	}
}

// ops are those of nodes.
func ops(nodes []ir.GraphNode) []string {
	out := make([]string, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].Op
	}
	return out
}
