package passes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

const starcoder2Config = `{"architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
	"vocab_size": 128, "max_position_embeddings": 512}`

// weightsOf are those of nodes of the first kind of layers and of those around the layers, by name.
func weightsOf(g *ir.Graph) map[string][]ir.GraphWeight {
	out := map[string][]ir.GraphWeight{}
	for _, nodes := range [][]ir.GraphNode{g.Before, g.Kinds[0].Nodes, g.After} {
		for _, n := range nodes {
			out[n.Name] = n.Weights
		}
	}
	return out
}

// StarCoder 2 7B as it was published.
func TestPublishedStarcoder2(t *testing.T) {
	s, err := importConfig(t, `{"activation_function": "gelu", "architectures": ["Starcoder2ForCausalLM"],
		"attention_dropout": 0.1, "attention_softmax_in_fp32": true, "bos_token_id": 0, "embedding_dropout": 0.1,
		"eos_token_id": 0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 4608, "initializer_range": 0.018042,
		"intermediate_size": 18432, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 16384,
		"mlp_type": "default", "model_type": "starcoder2", "norm_epsilon": 1e-05, "norm_type": "layer_norm",
		"num_attention_heads": 36, "num_hidden_layers": 32, "num_key_value_heads": 4, "residual_dropout": 0.1,
		"rope_theta": 1000000, "scale_attention_softmax_in_fp32": true, "scale_attn_weights": true,
		"sliding_window": 4096, "torch_dtype": "bfloat16", "transformers_version": "4.37.0.dev0", "use_bias": true,
		"use_cache": true, "vocab_size": 49152}`, State{MaxSeq: 8192})
	require.NoError(t, err)
	require.Empty(t, s.Diags)
	require.Equal(t, ir.Model{Name: s.Graph.Model.Name, Architecture: "Starcoder2ForCausalLM",
		DTypes: ir.Uniform(ir.BF16), Layers: 32, Hidden: 4608, Intermediate: 18432, Heads: 36, KVHeads: 4, HeadDim: 128,
		Vocab: 49152, MaxSeq: 8192, Eps: 1e-5, Tied: true}, s.Graph.Model)
	weights := weightsOf(s.Graph)
	for _, biased := range []string{"input_norm", "q_proj", "o_proj", "post_norm", "up_proj", "down_proj",
		"final_norm"} {
		require.Len(t, weights[biased], 2, biased)
	}
	require.Equal(t, "model.layers.{i}.mlp.c_fc.bias", weights["up_proj"][1].Key)
	require.Empty(t, weights["gelu_tanh"])
	s, err = importConfig(t, edit(starcoder2Config, fieldsOf{"use_bias": false}), State{})
	require.NoError(t, err)
	weights = weightsOf(s.Graph)
	require.Len(t, weights["input_norm"], 2)
	require.Len(t, weights["up_proj"], 1)
}
