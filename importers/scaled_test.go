package importers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

const graniteConfig = `{"architectures": ["GraniteForCausalLM"], "model_type": "granite", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
	"vocab_size": 128, "max_position_embeddings": 512}`

// factors are the parameters of nodes of a kind of layers and of those around the layers, by name and key.
func factors(g *ir.Graph) map[string]float64 {
	out := map[string]float64{}
	for _, nodes := range [][]ir.GraphNode{g.Before, g.Kinds[0].Nodes, g.After} {
		for _, n := range nodes {
			for _, p := range n.Params {
				if p.IsFloat {
					out[n.Name+"."+p.Key] = p.Float
				}
			}
		}
	}
	return out
}

// A factor is a node where it is not 1.
func TestFactorsOfGranite(t *testing.T) {
	s, err := importConfig(t, graniteConfig, Source{})
	require.NoError(t, err)
	require.Equal(t, 1.0, factors(s.Graph)["attention.scale"])
	for _, none := range []string{"embed.scale", "attn_scale.scale", "mlp_scale.scale", "logits_scale.scale"} {
		require.NotContains(t, factors(s.Graph), none)
	}
	s, err = importConfig(t, edit(graniteConfig, fieldsOf{"embedding_multiplier": 12.0, "residual_multiplier": 0.22,
		"attention_multiplier": 0.0078125, "logits_scaling": 16.0}), Source{})
	require.NoError(t, err)
	have := factors(s.Graph)
	for name, want := range map[string]float64{"embed.scale": 12, "attn_scale.scale": 0.22, "mlp_scale.scale": 0.22,
		"attention.scale": 0.0078125, "logits_scale.scale": 0.0625} {
		require.Equal(t, want, have[name], name)
	}
}

// Granite 3.1 2B as it was published.
func TestPublishedGranite(t *testing.T) {
	s, err := importConfig(t, `{"architectures": ["GraniteForCausalLM"], "attention_bias": false,
		"attention_dropout": 0.1, "attention_multiplier": 0.015625, "bos_token_id": 0, "embedding_multiplier": 12.0,
		"eos_token_id": 0, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
		"intermediate_size": 8192, "logits_scaling": 8.0, "max_position_embeddings": 131072, "mlp_bias": false,
		"model_type": "granite", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
		"pad_token_id": 0, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
		"rope_theta": 5000000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
		"transformers_version": "4.47.0.dev0", "use_cache": true, "vocab_size": 49155}`, Source{MaxSeq: 4096})
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
	require.Equal(t, ir.Model{Name: s.Graph.Model.Name, Architecture: "GraniteForCausalLM",
		DTypes: ir.Uniform(ir.BF16), Layers: 40, Hidden: 2048, Intermediate: 8192, Heads: 32, KVHeads: 8, HeadDim: 64,
		Vocab: 49155, MaxSeq: 4096, Eps: 1e-5, Tied: true}, s.Graph.Model)
}
