package importers

import (
	"slices"

	"amkc/ir"
)

// This file imports families whose experts are those of DeepSeek-V3: scores are sigmoids, to which a bias is added for
// the choice alone; experts may be chosen from the best groups of them; their weights are multiplied by a factor; every
// token has shared experts besides, and the first layers have none.

// scoredExperts reads the experts of such a family. counts are the fields that say how many there are; shared is how
// many every token has where n_shared_experts is absent, or 0 where it must be there.
func (m *importer) scoredExperts(counts []string, count, perToken, wide, shared int) mixtureOfExperts {
	e := m.readExperts(counts, count, perToken, "moe_intermediate_size", wide)
	e.sigmoid, e.extra, e.choosing = true, 1e-20, "mlp.gate.e_score_correction_bias"
	e.exact = true
	e.groups, e.ofGroups = m.size("n_group", 1, "experts"), m.size("topk_group", 1, "experts")
	if m.diags.Err() == nil && (e.count%e.groups != 0 || e.count/e.groups < 2 || e.ofGroups > e.groups ||
		e.perToken > e.count/e.groups*e.ofGroups) {
		m.fail(codeField, "n_group", "is %d, and topk_group %d, for %d of %d experts; want groups of as many experts, "+
			"at least two, and enough of them in the groups that are chosen from", e.groups, e.ofGroups, e.perToken,
			e.count)
	}
	e.scale = m.factor("routed_scaling_factor")
	m.sharedExperts(&e, "n_shared_experts", m.size("n_shared_experts", shared, "experts"), e.width)
	e.parts = sharedParts("mlp.shared_experts")
	return e
}

// denseBefore says that layers before the one that first_k_dense_replace names have an MLP.
func (m *importer) denseBefore(absent int) func(layer int) bool {
	if _, ok := m.value("first_k_dense_replace"); ok {
		absent = m.count("first_k_dense_replace")
	}
	return func(layer int) bool { return layer < absent }
}

// scoredModelled are the fields of such a family that its graph is built from, besides those of another one.
func scoredModelled(of []string, others ...string) []string {
	return expertsModelled(of, append(others, "n_routed_experts", "num_local_experts", "n_shared_experts",
		"moe_intermediate_size", "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor")...)
}

// importGLM4MoE builds the graph of a GLM-4.5 or GLM-4.5-Air, of which half of each head is rotated. Defaults of absent
// fields are those of transformers' Glm4MoeConfig.
func importGLM4MoE(m *importer) *ir.Graph {
	e := m.scoredExperts([]string{"n_routed_experts", "num_local_experts"}, 128, 8, 1408, 1)
	e.renormalised, e.dense = m.truth("norm_topk_prob", true), m.denseBefore(1)
	return m.decoder(&decoder{architecture: "Glm4MoeForCausalLM", modelled: glm4MoEModelled, inert: glm4MoEInert,
		layers: 46, hidden: 4096, intermediate: 10944, heads: 96, kvHeads: 8, vocab: 151552, positions: 131072,
		eps: 1e-5, check: (*importer).refuseOfGLM, turned: 0.5, normedHeads: m.truth("use_qk_norm", false), experts: &e,
		drafting: draftingLayers,
		biased:   projections{heads: m.truth("attention_bias", false)}})
}

var glm4MoEModelled = scoredModelled(glmModelled, "use_qk_norm", "first_k_dense_replace")

var glm4MoEInert = func() map[string]known {
	inert := expertsInert(llamaInert, glm4MoEModelled)
	inert["mlp_bias"] = isFalse.does(biases)
	for _, field := range draftingLayers {
		inert[field] = whatever
	}
	return inert
}()

// draftingLayers say how many layers follow the others, which only speculation runs.
var draftingLayers = []string{"num_nextn_predict_layers", "num_mtp_layers"}

// importSolarOpen builds the graph of a Solar Open: a GLM-4.5 without dense layers. Defaults of absent fields are those
// of transformers' SolarOpenConfig.
func importSolarOpen(m *importer) *ir.Graph {
	e := m.scoredExperts([]string{"n_routed_experts", "num_local_experts"}, 128, 8, 1280, 1)
	e.renormalised = m.truth("norm_topk_prob", true)
	return m.decoder(&decoder{architecture: "SolarOpenForCausalLM", modelled: solarModelled, inert: solarInert,
		layers: 48, hidden: 4096, intermediate: 1280, heads: 64, kvHeads: 8, headDim: 128, vocab: 196608,
		positions: 131072, eps: 1e-5, theta: 1e6, check: (*importer).refuseUnmodelled, experts: &e,
		fields: map[string]string{"intermediate_size": "moe_intermediate_size"},
		biased: projections{heads: m.truth("attention_bias", false)}})
}

var solarModelled = scoredModelled(without(glmModelled, "intermediate_size"))

var solarInert = func() map[string]known {
	inert := expertsInert(llamaInert, solarModelled)
	inert["mlp_bias"] = isFalse.does(biases)
	inert["intermediate_size"] = whatever // no layer is dense
	inert["first_k_dense_replace"] = isNumber(0).does("some layers have no experts")
	return inert
}()

// importDots1 builds the graph of a dots.llm1: attention is that of a Qwen3. Defaults of absent fields are those of
// transformers' Dots1Config.
func importDots1(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	e := m.scoredExperts([]string{"n_routed_experts", "num_local_experts"}, 0, 0, 1408, 0)
	e.renormalised, e.dense = m.truth("norm_topk_prob", false), m.denseBefore(0)
	return m.decoder(&decoder{architecture: "Dots1ForCausalLM", modelled: dots1Modelled, inert: dots1Inert,
		layers: 62, hidden: 4608, intermediate: 10944, heads: 32, kvHeads: 32, vocab: 152064, positions: 2048,
		check: (*importer).refuseOfDecoders, windows: dots1Windows, normedHeads: true, experts: &e,
		biased: projections{heads: attention, o: attention}})
}

var dots1Modelled = scoredModelled(without(llamaModelled, "mlp_bias", "use_sliding_window"), "first_k_dense_replace",
	"max_window_layers")

var dots1Inert = func() map[string]known {
	inert := expertsInert(llamaInert, dots1Modelled)
	inert["mlp_bias"], inert["use_sliding_window"] = whatever, whatever // which the class does not read
	inert["moe_layer_freq"] = isNumber(1).does("some layers have no experts")
	inert["scoring_func"] = isText("noaux_tc").does("experts are scored by another function")
	return inert
}()

// dots1Windows are those of the layers from max_window_layers on, or of those that layer_types lists.
func dots1Windows(m *importer, layers int) []int {
	windows, types := make([]int, layers), m.layerTypes(layers)
	window, from := m.windowOf(4096), 62
	if _, ok := m.value("max_window_layers"); ok {
		from = m.count("max_window_layers")
	}
	for i := range windows {
		if types == nil && i >= from || types != nil && types[i] == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}

// importMiniMaxM2 builds the graph of a MiniMax-M2: sigmoids and a bias for the choice, norms of all queries and of all
// keys, and a part of each head rotated. Defaults of absent fields are those of transformers' MiniMaxM2Config.
func importMiniMaxM2(m *importer) *ir.Graph {
	e := m.readExperts([]string{"num_local_experts", "num_experts"}, 256, 8, "intermediate_size", 1536)
	e.sigmoid, e.renormalised = true, true
	e.choosing = "block_sparse_moe.e_score_correction_bias"
	e.asOfMixtral()
	return m.decoder(&decoder{architecture: "MiniMaxM2ForCausalLM", modelled: miniMaxM2Modelled,
		inert: miniMaxM2Inert, layers: 62, hidden: 3072, intermediate: 1536, heads: 48, kvHeads: 8, headDim: 128,
		vocab: 200064, positions: 196608, theta: 5e6, check: (*importer).refuseOfMiniMaxM2, turned: m.miniMaxM2Part(),
		normedAll: true, experts: &e})
}

// miniMaxM2Part is the part of a head that is rotated where partial_rotary_factor does not say it: rotary_dim elements.
func (m *importer) miniMaxM2Part() float64 {
	if _, ok := m.value("rotary_dim"); !ok {
		return 1
	}
	turned, hd := m.size("rotary_dim", 1, "head_dim"), m.size("head_dim", 128, "head_dim")
	return min(1, float64(turned)/float64(hd))
}

func (m *importer) refuseOfMiniMaxM2() {
	m.refuseTrue("attention_bias")
	m.refuseWindows()
	m.refuseGate()
}

var miniMaxM2Modelled = expertsModelled(without(llamaModelled, "mlp_bias"), "num_local_experts", "num_experts",
	"rotary_dim")

var miniMaxM2Inert = func() map[string]known {
	inert := expertsInert(llamaInert, miniMaxM2Modelled)
	inert["mlp_bias"] = isFalse.does(biases)
	inert["auto_map"] = isCodeOf("minimax_m2", "MiniMaxM2")
	inert["scoring_func"] = isText("sigmoid").does("experts are scored by another function")
	inert["use_routing_bias"] = onlyTrue.does("no bias is added for the choice of experts")
	inert["shared_intermediate_size"] = isNumber(0).does("every token has an expert besides")
	inert["use_qk_norm"] = onlyTrue.does("queries and keys have no norm")
	inert["qk_norm_type"] = isText("per_layer").does("each head has a norm of its own")
	for _, of := range []string{"full_attention", "linear_attention", "mlp"} {
		inert["layernorm_"+of+"_beta"] = isNumber(1).does("branches of layers are scaled")
	}
	// Of modules that draft.
	for _, field := range []string{"use_mtp", "num_mtp_modules", "mtp_transformer_layers"} {
		inert[field] = whatever
	}
	inert["attn_type_list"] = known{accept: func(v any) bool {
		list, ok := v.([]any)
		return v == nil || ok && !slices.ContainsFunc(list, func(of any) bool { return !isNumber(1).accept(of) })
	}, want: "1 throughout"}.does("some layers have linear attention")
	return inert
}()
