package importers

import (
	"maps"

	"amkc/ir"
)

// importGPT2 builds the graph of a GPT-2: learned positions, an MLP without a gate, biases throughout, and matrices
// that the checkpoint has transposed, queries, keys and values in one. Defaults of absent fields are those of
// transformers' GPT2Config.
func importGPT2(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "GPT2LMHeadModel", modelled: gpt2Modelled, inert: gpt2Inert,
		fields: map[string]string{"rms_norm_eps": "layer_norm_epsilon", "hidden_size": "n_embd",
			"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "num_key_value_heads": "",
			"intermediate_size": "n_inner", "max_position_embeddings": "n_positions"},
		layers: 12, hidden: 768, heads: 12, vocab: 50257, positions: 1024, eps: 1e-5, tied: true, widening: 4,
		learned: &learned{}, transposed: true, layerNorm: &layerNorm{biased: true},
		act: m.activation("activation_function", "gelu_new"), biased: projections{heads: true, o: true, mlp: true},
		stacks: func(model *ir.Model) []stack {
			h := model.Hidden
			return []stack{{"attn.c_attn", 3 * h, map[string][]int{"q_proj": {0, h}, "k_proj": {h, 2 * h},
				"v_proj": {2 * h, 3 * h}}}}
		},
		names: m.gpt2Names()})
}

var gpt2Modelled = layerNormModelled([]string{"hidden_size", "num_hidden_layers", "num_attention_heads",
	"num_key_value_heads", "intermediate_size", "max_position_embeddings", "head_dim", "hidden_act", "rope_theta",
	"rope_scaling", "rope_parameters", partialFactor, "original_max_position_embeddings"}, "layer_norm_epsilon",
	"n_embd", "n_layer", "n_head", "n_inner", "n_positions", "activation_function")

// gpt2Inert are the inert fields of a GPT-2. n_ctx is what n_positions was called before; n_special and
// predict_special_tokens are of a head that classes no longer have, and output_past says what is returned.
var gpt2Inert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	for _, field := range []string{"n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
		"summary_type", "summary_use_proj", "reorder_and_upcast_attn", "vocab_size_or_config_json_file",
		"output_cross_attentions", "n_special", "predict_special_tokens", "output_past"} {
		inert[field] = whatever
	}
	inert["scale_attn_weights"] = isTrue.does("scores are not scaled")
	inert["scale_attn_by_inverse_layer_idx"] = isFalse.does("scores are scaled by the layer")
	return inert
}()

// gpt2Names are those of the files: published checkpoints have the decoder's tensors without a prefix.
func (m *importer) gpt2Names() *tensorNames {
	names := &tensorNames{body: "transformer.", layers: "h.{i}.", head: "lm_head", parts: map[string]string{
		"embed": "wte", "positions": "wpe", "input_norm": "ln_1", "post_norm": "ln_2", "final_norm": "ln_f",
		"o_proj": "attn.c_proj", "up_proj": "mlp.c_fc", "down_proj": "mlp.c_proj"}}
	if m.hasTensor("wte.weight") {
		names.body = ""
	}
	return names
}
