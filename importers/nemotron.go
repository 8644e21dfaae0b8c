package importers

import (
	"maps"

	"amkc/ir"
)

// importNemotron builds the graph of a Nemotron, such as Minitron: norms multiply by 1 + w and add a bias, the MLP has
// a squared ReLU and no gate, and heads rotate in part. Defaults of absent fields are those of transformers'
// NemotronConfig.
func importNemotron(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "NemotronForCausalLM", modelled: nemotronModelled, inert: nemotronInert,
		fields: map[string]string{"rms_norm_eps": "norm_eps"},
		layers: 32, hidden: 6144, intermediate: 24576, heads: 48, vocab: 256000, positions: 4096, eps: 1e-5,
		turned:    0.5,
		layerNorm: &layerNorm{biased: true}, unitOffset: true, act: m.activation("hidden_act", "relu2"),
		biased: projections{heads: attention, o: attention, mlp: m.truth("mlp_bias", false)}})
}

var nemotronModelled = layerNormModelled(nil, "norm_eps", "attention_bias", "mlp_bias")

var nemotronInert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	delete(inert, "attention_bias")
	delete(inert, "mlp_bias")
	return inert
}()
