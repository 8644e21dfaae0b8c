package passes

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
		check: (*importer).refuseOfDecoders, window: qwen2Window, biasedHeads: true})
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

// qwen2Window is the window of the layers from max_window_layers on, if use_sliding_window is true: of all of them or
// of none, unless no position lies beyond it. layer_types may say so again.
func qwen2Window(m *importer, model *ir.Model) int {
	if !m.truth("use_sliding_window", false) {
		m.refuseLayerTypes(fullAttention)
		return 0
	}
	from := 28
	if _, ok := m.doc.Get("max_window_layers"); ok {
		from = m.count("max_window_layers")
	}
	kinds := make([]any, model.Layers)
	for i := range kinds {
		kinds[i] = fullAttention
		if i >= from {
			kinds[i] = slidingAttention
		}
	}
	if v, ok := m.value("layer_types"); ok && !same(v, kinds) {
		m.fail(codeNotModelled, "layer_types", "are not those that max_window_layers gives; want \"full_attention\" "+
			"for the first %d and \"sliding_attention\" for the others", min(from, model.Layers))
	}
	if from >= model.Layers {
		return 0
	}
	window := m.windowOf(4096)
	if from > 0 && window > 0 && window < model.MaxSeq {
		m.fail(codeNotModelled, "max_window_layers", "is %d of %d layers, so that some attend to a window of %d and "+
			"some to all positions, which is not modelled; accepted: 0, or %d and more, or --max-seq %d or less", from,
			model.Layers, window, model.Layers, window)
	}
	return window
}
