package importers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

const starcoder2Config = `{"architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", "hidden_size": 64,
	"intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
	"vocab_size": 128, "max_position_embeddings": 512}`

const (
	sizes = `"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128,
		"max_position_embeddings": 512`
	stableLMConfig = `{"architectures": ["StableLmForCausalLM"], "model_type": "stablelm", "intermediate_size": 96,
		"num_key_value_heads": 2, ` + sizes + `}`
	nemotronConfig = `{"architectures": ["NemotronForCausalLM"], "model_type": "nemotron", "intermediate_size": 96,
		"num_key_value_heads": 2, ` + sizes + `}`
	gptNeoXConfig = `{"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "intermediate_size": 96, ` +
		sizes + `}`
	phiConfig    = `{"architectures": ["PhiForCausalLM"], "model_type": "phi", "intermediate_size": 96, ` + sizes + `}`
	falconConfig = `{"architectures": ["FalconForCausalLM"], "model_type": "falcon", ` + sizes + `}`
	cohereConfig = `{"architectures": ["CohereForCausalLM"], "model_type": "cohere", "intermediate_size": 96,
		"num_key_value_heads": 2, ` + sizes + `}`
	cohere2Config = `{"architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2", "intermediate_size": 96,
		"num_key_value_heads": 2, "sliding_window": 16, ` + sizes + `}`
	gpt2Config = `{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4,
		"vocab_size": 128, "n_positions": 512}`
	optConfig = `{"architectures": ["OPTForCausalLM"], "model_type": "opt", "ffn_dim": 96, ` + sizes + `}`

	olmoConfig = `{"architectures": ["OlmoForCausalLM"], "model_type": "olmo", "intermediate_size": 96,
		"num_key_value_heads": 2, ` + sizes + `}`
)

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
		"use_cache": true, "vocab_size": 49152}`, Source{MaxSeq: 8192})
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
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
	s, err = importConfig(t, edit(starcoder2Config, fieldsOf{"use_bias": false}), Source{})
	require.NoError(t, err)
	weights = weightsOf(s.Graph)
	require.Len(t, weights["input_norm"], 2)
	require.Len(t, weights["up_proj"], 1)
}

// The layouts of queries, keys and values in one tensor: of a key and value head its queries, its key and its value.
func TestStackedHeads(t *testing.T) {
	for name, c := range map[string]struct {
		config  string
		changes fieldsOf
		want    []string
	}{
		"gpt_neox": {gptNeoXConfig, nil, []string{
			"rows:0:16:48(gpt_neox.layers.{i}.attention.query_key_value.weight)",
			"rows:16:32:48(gpt_neox.layers.{i}.attention.query_key_value.weight)",
			"rows:32:48:48(gpt_neox.layers.{i}.attention.query_key_value.weight)"}},
		"falcon, one key and value head": {falconConfig, nil, []string{
			"rows:0:64:96(transformer.h.{i}.self_attention.query_key_value.weight)",
			"rows:64:80:96(transformer.h.{i}.self_attention.query_key_value.weight)",
			"rows:80:96:96(transformer.h.{i}.self_attention.query_key_value.weight)"}},
		"falcon, groups": {falconConfig, fieldsOf{"new_decoder_architecture": true, "num_kv_heads": 2}, []string{
			"rows:0:32:64(transformer.h.{i}.self_attention.query_key_value.weight)",
			"rows:32:48:64(transformer.h.{i}.self_attention.query_key_value.weight)",
			"rows:48:64:64(transformer.h.{i}.self_attention.query_key_value.weight)"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(c.config, c.changes), Source{})
			require.NoError(t, err)
			for i, node := range []string{"q_proj", "k_proj", "v_proj"} {
				require.Equal(t, c.want[i], weightsOf(s.Graph)[node][0].String())
			}
		})
	}
}

// Which vector and which norm the MLP reads.
func TestParallelBranches(t *testing.T) {
	for name, c := range map[string]struct {
		config  string
		changes fieldsOf
		reads   string
		norm    string
	}{
		"stablelm": {stableLMConfig, nil, "attn_add", "model.layers.{i}.post_attention_layernorm.weight"},
		"stablelm, parallel": {stableLMConfig, fieldsOf{"use_parallel_residual": true}, ir.Stream,
			"model.layers.{i}.input_layernorm.weight"},
		"gpt_neox": {gptNeoXConfig, nil, ir.Stream, "gpt_neox.layers.{i}.post_attention_layernorm.weight"},
		"gpt_neox, in order": {gptNeoXConfig, fieldsOf{"use_parallel_residual": false}, "attn_add",
			"gpt_neox.layers.{i}.post_attention_layernorm.weight"},
		"phi":    {phiConfig, nil, ir.Stream, "model.layers.{i}.input_layernorm.weight"},
		"falcon": {falconConfig, nil, ir.Stream, "transformer.h.{i}.input_layernorm.weight"},
		"falcon, in order": {falconConfig, fieldsOf{"parallel_attn": false}, "attn_add",
			"transformer.h.{i}.post_attention_layernorm.weight"},
		"falcon, new": {falconConfig, fieldsOf{"new_decoder_architecture": true}, ir.Stream,
			"transformer.h.{i}.ln_mlp.weight"},
		"falcon, new, one norm": {falconConfig, fieldsOf{"new_decoder_architecture": true,
			"num_ln_in_parallel_attn": 1}, ir.Stream, "transformer.h.{i}.input_layernorm.weight"},
		"cohere": {cohereConfig, nil, ir.Stream, "model.layers.{i}.input_layernorm.weight"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(c.config, c.changes), Source{})
			require.NoError(t, err)
			require.Equal(t, c.norm, weightsOf(s.Graph)["post_norm"][0].Key)
			for _, n := range s.Graph.Kinds[0].Nodes {
				if n.Name == "post_norm" {
					require.Equal(t, []string{c.reads}, n.Inputs)
				}
			}
		})
	}
}

// Published configs of the families, with what they say besides the sizes.
func TestPublishedWithLayerNorm(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   ir.Model
	}{
		"pythia-160m": {`{"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "classifier_dropout": 0.1,
			"eos_token_id": 0, "hidden_act": "gelu", "hidden_size": 768, "initializer_range": 0.02,
			"intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
			"model_type": "gpt_neox", "num_attention_heads": 12, "num_hidden_layers": 12, "rotary_emb_base": 10000,
			"rotary_pct": 0.25, "tie_word_embeddings": false, "torch_dtype": "float16",
			"transformers_version": "4.24.0", "use_cache": true, "use_parallel_residual": true, "vocab_size": 50304}`,
			ir.Model{Architecture: "GPTNeoXForCausalLM", DTypes: ir.Uniform(ir.F16), Layers: 12, Hidden: 768,
				Intermediate: 3072, Heads: 12, KVHeads: 12, HeadDim: 64, Vocab: 50304, MaxSeq: 2048, Eps: 1e-5}},
		"phi-2": {`{"_name_or_path": "microsoft/phi-2", "architectures": ["PhiForCausalLM"], "attention_dropout": 0.0,
			"bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256, "hidden_act": "gelu_new",
			"hidden_size": 2560, "initializer_range": 0.02, "intermediate_size": 10240, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 2048, "model_type": "phi", "num_attention_heads": 32, "num_hidden_layers": 32,
			"num_key_value_heads": 32, "partial_rotary_factor": 0.4, "qk_layernorm": false, "resid_pdrop": 0.1,
			"rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float16",
			"transformers_version": "4.37.0", "use_cache": true, "vocab_size": 51200}`,
			ir.Model{Architecture: "PhiForCausalLM", DTypes: ir.Uniform(ir.F16), Layers: 32, Hidden: 2560,
				Intermediate: 10240, Heads: 32, KVHeads: 32, HeadDim: 80, Vocab: 51200, MaxSeq: 2048, Eps: 1e-5}},
		"falcon-7b": {`{"alibi": false, "apply_residual_connection_post_layernorm": false,
			"architectures": ["FalconForCausalLM"], "attention_dropout": 0.0, "auto_map": {
			"AutoConfig": "configuration_falcon.FalconConfig", "AutoModel": "modeling_falcon.FalconModel",
			"AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM"}, "bias": false, "bos_token_id": 11,
			"eos_token_id": 11, "hidden_dropout": 0.0, "hidden_size": 4544, "initializer_range": 0.02,
			"layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": true,
			"new_decoder_architecture": false, "num_attention_heads": 71, "num_hidden_layers": 32,
			"parallel_attn": true, "torch_dtype": "bfloat16", "transformers_version": "4.27.4", "use_cache": true,
			"vocab_size": 65024}`,
			ir.Model{Architecture: "FalconForCausalLM", DTypes: ir.Uniform(ir.BF16), Layers: 32, Hidden: 4544,
				Intermediate: 18176, Heads: 71, KVHeads: 1, HeadDim: 64, Vocab: 65024, MaxSeq: 2048, Eps: 1e-5,
				Tied: true}},
		"command-r": {`{"architectures": ["CohereForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 5, "eos_token_id": 255001, "hidden_act": "silu", "hidden_size": 8192,
			"initializer_range": 0.02, "intermediate_size": 22528, "layer_norm_eps": 1e-05, "logit_scale": 0.0625,
			"max_position_embeddings": 8192, "model_max_length": 131072, "model_type": "cohere",
			"num_attention_heads": 64, "num_hidden_layers": 40, "num_key_value_heads": 64, "pad_token_id": 0,
			"pretraining_tp": 1, "rope_theta": 8000000.0, "torch_dtype": "float16",
			"transformers_version": "4.38.2", "use_cache": true, "vocab_size": 256000}`,
			ir.Model{Architecture: "CohereForCausalLM", DTypes: ir.Uniform(ir.F16), Layers: 40, Hidden: 8192,
				Intermediate: 22528, Heads: 64, KVHeads: 64, HeadDim: 128, Vocab: 256000, MaxSeq: 2048, Eps: 1e-5,
				Tied: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, c.config, Source{MaxSeq: 2048})
			require.NoError(t, err)
			c.want.Name = s.Graph.Model.Name
			require.Equal(t, c.want, s.Graph.Model)
		})
	}
}

// A model has no more positions than it has learned, and each has a row of the table.
func TestLearnedPositions(t *testing.T) {
	for _, c := range []struct {
		config string
		offset int
	}{{gpt2Config, 0}, {optConfig, 2}} {
		s, err := importConfig(t, c.config, Source{MaxSeq: 512})
		require.NoError(t, err)
		embed := s.Graph.Before[0]
		require.Equal(t, []int{512 + c.offset, 64}, embed.Weights[1].Shape)
		require.Equal(t, c.offset, embed.IntOr("offset", -1))
		require.Empty(t, s.Graph.Rope.InvFreq)
		_, err = importConfig(t, c.config, Source{MaxSeq: 513})
		require.ErrorContains(t, err, "--max-seq 513 is more than the 512 positions that the model has learned")
	}
}

// GPT-2 as it was published, whose matrices have columns as rows.
func TestPublishedGPT2(t *testing.T) {
	s, err := importConfig(t, `{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
		"attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
		"layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
		"n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
		"summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
		"task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257}`,
		Source{})
	require.NoError(t, err)
	require.Equal(t, ir.Model{Name: s.Graph.Model.Name, Architecture: "GPT2LMHeadModel", DTypes: ir.Uniform(ir.BF16),
		Layers: 12, Hidden: 768, Intermediate: 3072, Heads: 12, KVHeads: 12, HeadDim: 64, Vocab: 50257, MaxSeq: 1024,
		Eps: 1e-5, Tied: true}, s.Graph.Model)
	weights := weightsOf(s.Graph)
	for node, want := range map[string]string{
		"q_proj": "rows:0:768(transpose(transformer.h.{i}.attn.c_attn.weight))",
		"v_proj": "rows:1536:2304(transpose(transformer.h.{i}.attn.c_attn.weight))",
		"o_proj": "transpose(transformer.h.{i}.attn.c_proj.weight)",
	} {
		require.Equal(t, want, weights[node][0].String())
	}
	require.Equal(t, "rows:768:1536(transformer.h.{i}.attn.c_attn.bias)", weights["k_proj"][1].String())
}

// What the families have and amkc does not is refused, with what would be accepted.
func TestRefusedWithLayerNorm(t *testing.T) {
	for name, c := range map[string]struct {
		config  string
		changes fieldsOf
		want    string
	}{
		"ALiBi":              {falconConfig, fieldsOf{"alibi": true}, "positions enter by ALiBi, which"},
		"three norms":        {falconConfig, fieldsOf{"num_ln_in_parallel_attn": 3}, "accepted: 1, or 2"},
		"norms of heads":     {cohere2Config, fieldsOf{"use_qk_norm": true}, "has a norm, which is not modelled"},
		"norms of no switch": {phiConfig, fieldsOf{"qk_layernorm": "yes"}, "want true or false"},
		"norms after sums":   {optConfig, fieldsOf{"do_layer_norm_before": false}, "norms come after the sums"},
		"projected":          {optConfig, fieldsOf{"word_embed_proj_dim": 32}, "embeddings are projected"},
		"scaled by layers":   {gpt2Config, fieldsOf{"scale_attn_by_inverse_layer_idx": true}, "by the layer, which"},
		"clipped to nothing": {olmoConfig, fieldsOf{"clip_qkv": 0}, "want a number from"},
		"clipped by others":  {phiConfig, fieldsOf{"clip_qkv": 8}, "are clipped, which is not modelled"},
		"an activation":      {phiConfig, fieldsOf{"hidden_act": "mish"}, `accepted: "gelu", "gelu_accurate"`},
		"no window":          {cohere2Config, fieldsOf{"sliding_window": nil}, "want an integer from 1 on"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importConfig(t, edit(c.config, c.changes), Source{})
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Queries, keys and values of an OLMo are clipped as they are projected, before the rotation.
func TestClippedProjections(t *testing.T) {
	nodes := func(changes fieldsOf) (out []string) {
		s, err := importConfig(t, edit(olmoConfig, changes), Source{})
		require.NoError(t, err)
		for _, n := range s.Graph.Kinds[0].Nodes {
			if n.Op == "clip" || n.Op == "rope" {
				out = append(out, fmt.Sprintf("%s%v%g", n.Name, n.Inputs, n.FloatOr("cap", 0)))
			}
		}
		return out
	}
	require.Equal(t, []string{"q_clip[q_proj]8", "k_clip[k_proj]8", "v_clip[v_proj]8", "q_rope[q_clip]0",
		"k_rope[k_clip]0"}, nodes(fieldsOf{"clip_qkv": 8}))
	require.Equal(t, []string{"q_rope[q_proj]0", "k_rope[k_proj]0"}, nodes(fieldsOf{"clip_qkv": nil}))
}

// Norms of heads have weights of each head, in one tensor or in several, or of all.
func TestWeightsOfHeads(t *testing.T) {
	for name, c := range map[string]struct {
		config  string
		changes fieldsOf
		want    string
		tensors map[string][]int
	}{
		"cohere": {cohereConfig, fieldsOf{"use_qk_norm": true}, "[model.layers.{i}.self_attn.k_norm.weight]",
			map[string][]int{"model.layers.0.self_attn.q_norm.weight": {4, 16},
				"model.layers.1.self_attn.k_norm.weight": {2, 16}}},
		"stablelm": {stableLMConfig, fieldsOf{"qk_layernorm": true},
			"[[model.layers.{i}.self_attn.k_layernorm.norms.0.weight " +
				"model.layers.{i}.self_attn.k_layernorm.norms.1.weight]]",
			map[string][]int{"model.layers.1.self_attn.q_layernorm.norms.3.weight": {16}}},
		"phi": {phiConfig, fieldsOf{"qk_layernorm": true},
			"[model.layers.{i}.self_attn.k_layernorm.weight model.layers.{i}.self_attn.k_layernorm.bias]",
			map[string][]int{"model.layers.1.self_attn.q_layernorm.bias": {16}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(c.config, c.changes), Source{})
			require.NoError(t, err)
			require.Equal(t, c.want, fmt.Sprint(weightsOf(s.Graph)["k_norm"]))
			for w := range s.Graph.Weights() {
				if shape, asked := c.tensors[w.Key]; asked {
					require.Equal(t, shape, w.Shape, w.Key)
					delete(c.tensors, w.Key)
				}
			}
			require.Empty(t, c.tensors)
			off, err := importConfig(t, c.config, Source{})
			require.NoError(t, err)
			require.NotContains(t, weightsOf(off.Graph), "k_norm")
		})
	}
}
