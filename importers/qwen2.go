package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importQwen2 builds the graph of a Qwen2 or Qwen2.5: a Llama whose projections of queries, keys and values have
// biases. Defaults of absent fields are those of transformers' Qwen2Config.
func importQwen2(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "Qwen2ForCausalLM",
		modelled: qwen2Modelled, inert: qwen2Inert,
		layers: 32, hidden: 4096, intermediate: 22016, heads: 32, kvHeads: 32, vocab: 151936, positions: 32768,
		check: (*importer).refuseOfDecoders, windows: qwen2Windows, biased: projections{heads: true}})
}

var qwen2Modelled = append(slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return field == "attention_bias" || field == "mlp_bias"
}), "max_window_layers")

// qwen2Inert are the inert fields of a Qwen2. Its class does not read attention_bias and mlp_bias either: where a
// tensor is missing or left over, the files say so.
var qwen2Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["use_mrope"] = isFalse.does("positions have three parts")
	inert["attention_bias"], inert["mlp_bias"] = whatever, whatever
	return inert
}()

func qwen2Windows(m *importer, layers int) []int { return m.windowsFrom(28, layers) }

// windowsFrom are those of the layers from max_window_layers on, or of those that layer_types lists, if
// use_sliding_window is true. from is what an absent max_window_layers means.
func (m *importer) windowsFrom(from, layers int) []int {
	windows := make([]int, layers)
	if !m.truth("use_sliding_window", false) {
		m.refuseLayerTypes(fullAttention)
		return windows
	}
	if _, ok := m.doc.Get("max_window_layers"); ok {
		from = m.count("max_window_layers")
	}
	window, types := m.windowOf(4096), m.layerTypes(layers)
	for i := range windows {
		if types == nil && i >= from || types != nil && types[i] == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}
