package importers

import (
	"maps"

	"amkc/ir"
)

// importFalcon builds the graph of a Falcon of 2023, the 7B, the 40B and the 180B: an MLP without a gate alongside
// attention. The new architecture has several groups of heads, side by side in one tensor, and mostly a norm for each
// branch; the old one has a single key and value head after all queries, or as many as of queries. Defaults of absent
// fields are those of transformers' FalconConfig.
func importFalcon(m *importer) *ir.Graph {
	newer := m.truth("new_decoder_architecture", false)
	single := m.unlessOff("multi_query") && !newer
	biased, parallel := m.truth("bias", false), m.unlessOff("parallel_attn") || newer
	d := &decoder{architecture: "FalconForCausalLM", modelled: falconModelled, inert: falconInert,
		fields: map[string]string{"rms_norm_eps": "layer_norm_epsilon", "intermediate_size": "ffn_hidden_size",
			"num_key_value_heads": "num_kv_heads", "hidden_act": "activation"},
		layers: 32, hidden: 4544, heads: 71, vocab: 65024, positions: 2048, eps: 1e-5, tied: true, widening: 4,
		layerNorm: &layerNorm{biased: true}, act: m.activation("activation", "gelu"), parallel: parallel,
		biased: projections{heads: biased, o: biased, mlp: biased}, stacks: falconStacks,
		names: &tensorNames{body: "transformer.", head: "lm_head", layers: "h.{i}.", parts: map[string]string{
			"embed": "word_embeddings", "final_norm": "ln_f", "o_proj": "self_attention.dense",
			"up_proj": "mlp.dense_h_to_4h", "down_proj": "mlp.dense_4h_to_h"}}}
	if kv, heads := m.size("num_kv_heads", 1, "kv_heads"), m.size("num_attention_heads", 71, "heads"); single {
		d.fields["num_key_value_heads"], d.kvHeads = "", 1 // whatever it says
	} else if _, ok := m.value("num_kv_heads"); ok && !newer && kv != heads {
		m.fail(codeNotModelled, "num_kv_heads", "is %d without new_decoder_architecture and multi_query, whose tensor "+
			"has as many as num_attention_heads, %d; accepted: that", kv, heads)
	}
	norms := 1
	if newer {
		norms = 2
	}
	if _, ok := m.value("num_ln_in_parallel_attn"); ok {
		norms = m.count("num_ln_in_parallel_attn")
	}
	switch {
	case newer && norms == 2:
		d.names.parts["input_norm"], d.names.parts["post_norm"] = "ln_attn", "ln_mlp"
	case norms != 1:
		m.fail(codeNotModelled, "num_ln_in_parallel_attn", "is %d; accepted: 1, or 2 with new_decoder_architecture",
			norms)
	case newer && !m.unlessOff("parallel_attn"):
		m.fail(codeNotModelled, "parallel_attn", "is false, and new_decoder_architecture true, of which transformers "+
			"makes norms that it does not apply; accepted: true")
	case parallel:
		d.names.parts["post_norm"] = "input_layernorm"
	}
	return m.decoder(d)
}

// unlessOff reads a switch that is on where it is absent, and off where it is null.
func (m *importer) unlessOff(field string) bool {
	_, there := m.doc.Get(field)
	return m.truth(field, !there)
}

// falconStacks are queries, keys and values in one tensor, group by group: the queries of a key and value head, its key
// and its value.
func falconStacks(m *ir.Model) []stack {
	hd, group := m.HeadDim, m.Heads/m.KVHeads*m.HeadDim
	all := group + 2*hd
	return []stack{{"self_attention.query_key_value", m.KVHeads * all, map[string][]int{"q_proj": {0, group, all},
		"k_proj": {group, group + hd, all}, "v_proj": {group + hd, all, all}}}}
}

var falconModelled = layerNormModelled([]string{"num_key_value_heads", "head_dim", "intermediate_size", "hidden_act",
	partialFactor}, "layer_norm_epsilon", "ffn_hidden_size", "num_kv_heads", "activation", "bias", "multi_query",
	"parallel_attn", "new_decoder_architecture", "num_ln_in_parallel_attn")

var falconInert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	delete(inert, "parallel_attn")
	inert["auto_map"] = isCodeOf("falcon", "Falcon")
	inert["apply_residual_connection_post_layernorm"] = isFalse.does("sums go on from the norms")
	return inert
}()
