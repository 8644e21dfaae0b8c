package importers

import (
	"maps"

	"amkc/ir"
)

// importErnie45MoE builds the graph of an Ernie 4.5 with experts: a bias is added to the softmax of their scores for
// the choice alone, and every token has shared experts besides. Defaults of absent fields are those of transformers'
// Ernie4_5_MoeConfig.
func importErnie45MoE(m *importer) *ir.Graph {
	biased := m.truth("use_bias", false)
	e := m.sizesOfExperts([]string{"moe_num_experts", "num_experts"}, 64, "moe_intermediate_size", 1536)
	e.perToken = m.sizeOf([]string{"moe_k", "num_experts_per_tok"}, 6, "per_token")
	e.dense, e.renormalised, e.least = m.ernieDense(), true, 1e-12
	if v, ok := m.value("moe_norm_min"); ok {
		e.least = m.single("moe_norm_min", v)
	}
	e.choosing, e.choosingRows = "mlp.moe_statics.e_score_correction_bias", true
	e.exact = true
	shared := 2
	if _, ok := m.value("moe_num_shared_experts"); ok {
		shared = m.count("moe_num_shared_experts")
	}
	m.sharedExperts(&e, "moe_num_shared_experts", shared, e.width)
	e.parts = sharedParts("mlp.shared_experts")
	m.leftOut = append(m.leftOut, "model.mtp_") // modules that draft
	return m.decoder(&decoder{architecture: "Ernie4_5_MoeForCausalLM", modelled: ernie45MoEModelled,
		inert: ernie45MoEInert, layers: 28, hidden: 2560, intermediate: 12288, heads: 20, kvHeads: 4, vocab: 103424,
		positions: 131072, eps: 1e-5, tied: true, theta: 5e5, check: (*importer).refuseUnmodelled, experts: &e,
		biased: projections{heads: biased, o: biased, mlp: biased}, biasedHead: biased, interleaved: true})
}

// ernieDense are the layers without experts: those outside of an interval, and in it all but every
// moe_layer_interval-th.
func (m *importer) ernieDense() func(layer int) bool {
	interval, start, end := m.size("moe_layer_interval", 1, "layers"), 1, -1
	if _, ok := m.value("moe_layer_start_index"); ok {
		start = m.count("moe_layer_start_index")
	}
	if v, ok := m.value("moe_layer_end_index"); ok && !isNumber(-1).accept(v) {
		end = m.count("moe_layer_end_index")
	}
	return func(layer int) bool {
		return (layer+1)%interval != 0 || layer < start || end >= 0 && layer > end
	}
}

var ernie45MoEModelled = expertsModelled(ernie45Modelled, "moe_num_experts", "num_experts", "moe_k",
	"moe_intermediate_size", "moe_num_shared_experts", "moe_layer_start_index", "moe_layer_end_index",
	"moe_layer_interval", "moe_norm_min")

var ernie45MoEInert = func() map[string]known {
	inert := expertsInert(ernie45Inert, ernie45MoEModelled)
	maps.Copy(inert, map[string]known{"auto_map": isCodeOf("ernie4_5_moe", "Ernie4_5_Moe"),
		"moe_gate": isText("topk").does("experts are chosen in another way"), "moe_capacity": whatever,
		"moe_use_aux_free": whatever, "num_nextn_predict_layers": whatever})
	return inert
}()
