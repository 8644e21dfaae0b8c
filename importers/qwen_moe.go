package importers

import (
	"maps"

	"amkc/ir"
)

// Families of Qwen with experts. Layers that mlp_only_layers lists, and those that decoder_sparse_step passes over,
// have an MLP of intermediate_size.

// importQwen3MoE builds the graph of a Qwen3-MoE: a Qwen3 with experts. Defaults of absent fields are those of
// transformers' Qwen3MoeConfig.
func importQwen3MoE(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	e := m.readExperts([]string{"num_experts", "num_local_experts"}, 128, 8, "moe_intermediate_size", 768)
	e.dense, e.renormalised = m.denseLayers(), m.truth("norm_topk_prob", false)
	return m.decoder(&decoder{architecture: "Qwen3MoeForCausalLM", modelled: qwen3MoEModelled, inert: qwen3MoEInert,
		layers: 24, hidden: 2048, intermediate: 6144, heads: 32, kvHeads: 4, vocab: 151936, positions: 32768,
		check: (*importer).refuseOfDecoders, windows: qwen3MoEWindows, normedHeads: true, experts: &e,
		biased: projections{heads: attention, o: attention}})
}

// qwen3MoEWindows: with use_sliding_window all layers have the window; the class reads no list of kinds.
func qwen3MoEWindows(m *importer, layers int) []int {
	if !m.truth("use_sliding_window", false) {
		return make([]int, layers)
	}
	return sameWindow(m.windowOf(4096), layers)
}

var qwen3MoEModelled = expertsModelled(without(qwen3Modelled, "max_window_layers", "layer_types", "mlp_bias"),
	"num_experts", "num_local_experts", "moe_intermediate_size", "norm_topk_prob", "decoder_sparse_step",
	"mlp_only_layers")

var qwen3MoEInert = func() map[string]known {
	inert := expertsInert(llamaInert, qwen3MoEModelled)
	inert["max_window_layers"], inert["mlp_bias"] = whatever, whatever
	inert["layer_types"] = allText(fullAttention).does(windows)
	return inert
}()

// importQwen2MoE builds the graph of a Qwen2-MoE: a Qwen2 with experts, and one that every token has besides, times a
// sigmoid. Defaults of absent fields are those of transformers' Qwen2MoeConfig.
func importQwen2MoE(m *importer) *ir.Graph {
	e := m.readExperts([]string{"num_experts"}, 60, 4, "moe_intermediate_size", 1408)
	e.dense, e.renormalised = m.denseLayers(), m.truth("norm_topk_prob", false)
	m.readShared(&e, 5632)
	return m.decoder(&decoder{architecture: "Qwen2MoeForCausalLM", modelled: qwen2MoEModelled, inert: qwen2MoEInert,
		layers: 24, hidden: 2048, intermediate: 5632, heads: 16, kvHeads: 16, vocab: 151936, positions: 32768,
		check: (*importer).refuseOfQwen2MoE, experts: &e, biased: projections{heads: m.truth("qkv_bias", true)}})
}

// readShared reads the expert that every token has, times a sigmoid.
func (m *importer) readShared(e *mixtureOfExperts, wide int) {
	e.shared, e.sharedGated = m.size("shared_expert_intermediate_size", wide, "intermediate"), true
	e.parts = sharedParts("mlp.shared_expert")
	e.parts["shared_gate"] = "mlp.shared_expert_gate"
}

// refuseOfQwen2MoE refuses windows, which its published models do not use.
func (m *importer) refuseOfQwen2MoE() {
	m.refuseTrue("use_sliding_window")
	m.refuseLayerTypes(fullAttention)
	m.refuseOfDecoders()
}

var qwen2MoEModelled = expertsModelled(without(llamaModelled, "attention_bias", "mlp_bias", "sliding_window"),
	"num_experts", "moe_intermediate_size", "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers",
	"shared_expert_intermediate_size", "qkv_bias")

var qwen2MoEInert = func() map[string]known {
	inert := expertsInert(llamaInert, qwen2MoEModelled)
	maps.Copy(inert, map[string]known{"max_window_layers": whatever, "sliding_window": whatever,
		"attention_bias": whatever, "mlp_bias": whatever})
	return inert
}()
