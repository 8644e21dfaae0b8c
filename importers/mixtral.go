package importers

import (
	"slices"

	"amkc/ir"
)

// importMixtral builds the graph of a Mixtral: a Mistral with experts, whose weights are renormalised. Defaults of
// absent fields are those of transformers' MixtralConfig.
func importMixtral(m *importer) *ir.Graph {
	e := m.readExperts([]string{"num_local_experts", "num_experts"}, 8, 2, "intermediate_size", 14336)
	e.renormalised = true
	e.asOfMixtral()
	return m.decoder(&decoder{architecture: "MixtralForCausalLM", modelled: mixtralModelled, inert: mixtralInert,
		layers: 32, hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, vocab: 32000, positions: 131072,
		eps: 1e-5, theta: 1e6, check: (*importer).refuseOfMixtral, experts: &e,
		windows: func(m *importer, layers int) []int { return sameWindow(m.windowOf(0), layers) }})
}

func (m *importer) refuseOfMixtral() {
	m.refuseTrue("attention_bias", "mlp_bias", "use_sliding_window")
	m.refuseOfDecoders()
}

var mixtralModelled = expertsModelled(without(llamaModelled, "layer_types"), "num_local_experts", "num_experts")

var mixtralInert = func() map[string]known {
	inert := expertsInert(llamaInert, mixtralModelled)
	inert["layer_types"] = allText(fullAttention).does(windows)
	return inert
}()

// importOLMoE builds the graph of an OLMoE: experts, and norms of all queries and of all keys before their rotation.
// Defaults of absent fields are those of transformers' OlmoeConfig.
func importOLMoE(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	e := m.readExperts([]string{"num_experts", "num_local_experts"}, 64, 8, "intermediate_size", 2048)
	e.renormalised = m.truth("norm_topk_prob", false)
	return m.decoder(&decoder{architecture: "OlmoeForCausalLM", modelled: olmoEModelled, inert: olmoEInert,
		layers: 16, hidden: 2048, intermediate: 2048, heads: 16, vocab: 50304, positions: 4096, eps: 1e-5,
		check: (*importer).refuseUnmodelled, normedAll: true, experts: &e,
		biased: projections{heads: attention, o: attention}})
}

var olmoEModelled = expertsModelled(without(llamaModelled, "mlp_bias"), "num_experts", "num_local_experts",
	"norm_topk_prob")

var olmoEInert = func() map[string]known {
	inert := expertsInert(llamaInert, olmoEModelled)
	inert["mlp_bias"] = isFalse.does(biases)
	return inert
}()

// importFlexOLMo builds the graph of a FlexOlmo: an OLMo 2 with experts. Defaults of absent fields are those of
// transformers' FlexOlmoConfig.
func importFlexOLMo(m *importer) *ir.Graph {
	e := m.readExperts([]string{"num_experts", "num_local_experts"}, 7, 5, "intermediate_size", 11008)
	e.renormalised = m.truth("norm_topk_prob", false)
	d := olmo2(m, "FlexOlmoForCausalLM")
	d.modelled, d.inert, d.check, d.experts = olmoEModelled, olmoEInert, (*importer).refuseUnmodelled, &e
	d.vocab, d.positions, d.eps, d.theta = 100352, 4096, 1e-6, 5e5
	return m.decoder(d)
}

// without are fields but for some.
func without(fields []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return slices.Contains(some, field) })
}
