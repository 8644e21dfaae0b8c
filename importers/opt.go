package importers

import (
	"maps"

	"amkc/ir"
)

// importOPT builds the graph of an OPT: learned positions, whose table begins two rows before the first, and an MLP
// without a gate. Defaults of absent fields are those of transformers' OPTConfig; the eps of its norms is not a field.
func importOPT(m *importer) *ir.Graph {
	biased, affine := m.truth("enable_bias", true), m.truth("layer_norm_elementwise_affine", true)
	return m.decoder(&decoder{architecture: "OPTForCausalLM", modelled: optModelled, inert: optInert,
		fields: map[string]string{"rms_norm_eps": "", "num_key_value_heads": "", "intermediate_size": "ffn_dim"},
		layers: 12, hidden: 768, intermediate: 3072, heads: 12, vocab: 50272, positions: 2048, eps: 1e-5, tied: true,
		learned: &learned{offset: 2}, layerNorm: &layerNorm{biased: affine, bare: !affine},
		act: m.activation("activation_function", "relu"), biased: projections{heads: biased, o: biased, mlp: biased},
		names: &tensorNames{body: "model.decoder.", head: "lm_head", parts: map[string]string{
			"positions": "embed_positions", "input_norm": "self_attn_layer_norm", "post_norm": "final_layer_norm",
			"final_norm": "final_layer_norm", "o_proj": "self_attn.out_proj", "up_proj": "fc1", "down_proj": "fc2"}},
		check: (*importer).refuseOfOPT})
}

var optModelled = layerNormModelled([]string{"num_key_value_heads", "intermediate_size", "head_dim", "hidden_act",
	"rope_theta", "rope_scaling", "rope_parameters", partialFactor, "original_max_position_embeddings"}, "ffn_dim",
	"activation_function", "enable_bias", "layer_norm_elementwise_affine", "word_embed_proj_dim")

// optInert are the inert fields of an OPT. OPT-350m has its norms after the sums, which is not modelled.
var optInert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	inert["do_layer_norm_before"] = isTrue.does("norms come after the sums")
	inert["_remove_final_layer_norm"] = isFalse.does("there is no norm before the logits")
	return inert
}()

// refuseOfOPT refuses what the class of an OPT reads and a decoder does not model.
func (m *importer) refuseOfOPT() {
	if _, ok := m.value("word_embed_proj_dim"); ok {
		hidden := m.size("hidden_size", 768, "hidden")
		if n := m.size("word_embed_proj_dim", hidden, "hidden"); n != hidden {
			m.fail(codeNotModelled, "word_embed_proj_dim", "is %d and hidden_size %d: embeddings are projected, which "+
				"is not modelled; accepted: hidden_size, or null", n, hidden)
		}
	}
}
