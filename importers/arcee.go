package importers

import "amkc/ir"

// importArcee builds the graph of an Arcee AFM: a Llama whose MLP has no gate, and a squared ReLU. Defaults of absent
// fields are those of transformers' ArceeConfig.
func importArcee(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "ArceeForCausalLM", modelled: llamaModelled, inert: llamaInert,
		layers: 32, hidden: 2560, intermediate: 18432, heads: 32, vocab: 32000, positions: 4096, eps: 1e-5,
		act: m.activation("hidden_act", "relu2"), check: (*importer).refuseOfArcee,
		biased: projections{heads: attention, o: attention, mlp: m.truth("mlp_bias", false)}})
}

// refuseOfArcee refuses what only families with a gate or windows have.
func (m *importer) refuseOfArcee() {
	m.refuseWindows()
	m.refusePartial()
}
