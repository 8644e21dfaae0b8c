package importers

import "amkc/ir"

// importMistral builds the graph of a Mistral: a Llama, some versions of which attend to a window. Defaults of absent
// fields are those of transformers' MistralConfig, whose window is not null.
func importMistral(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "MistralForCausalLM", modelled: llamaModelled, inert: llamaInert,
		layers: 32, hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, vocab: 32000, positions: 4096 * 32,
		check: (*importer).refuseOfMistral, windows: mistralWindows})
}

// mistralWindows are one for all layers.
func mistralWindows(m *importer, layers int) []int { return m.windowOfAll(4096, layers) }

// windowOfAll is one for all layers, whose kind may be listed; absent is what the family's class says.
func (m *importer) windowOfAll(absent, layers int) []int {
	window, kind := m.windowOf(absent), fullAttention
	if window > 0 {
		kind = slidingAttention
	}
	m.refuseLayerTypes(kind)
	return sameWindow(window, layers)
}

// importMinistral builds the graph of a Ministral: a Mistral whose layers may be of two kinds, which layer_types lists.
// Defaults of absent fields are those of transformers' MinistralConfig, which are Mistral's.
func importMinistral(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "MinistralForCausalLM", modelled: llamaModelled, inert: llamaInert,
		layers: 32, hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, vocab: 32000, positions: 4096 * 32,
		check: (*importer).refuseOfMistral, windows: ministralWindows})
}

// ministralWindows are those of the layers that layer_types has with one, or of all if it is missing.
func ministralWindows(m *importer, layers int) []int {
	windows := sameWindow(m.windowOf(4096), layers)
	for i, kind := range m.layerTypes(layers) {
		if kind == fullAttention {
			windows[i] = 0
		}
	}
	return windows
}

// refuseOfMistral refuses what other families have and this one does not.
func (m *importer) refuseOfMistral() {
	m.refuseTrue("attention_bias", "mlp_bias", "use_sliding_window")
	m.refuseOfDecoders()
}
