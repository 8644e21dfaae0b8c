package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importSmolLM3 builds the graph of a SmolLM3: a Llama some of whose layers do not rotate queries and keys. Defaults of
// absent fields are those of transformers' SmolLM3Config.
func importSmolLM3(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	var rotates []bool
	windows := func(m *importer, layers int) []int {
		rotates = m.rotating(layers)
		return m.smolLM3Windows(rotates)
	}
	return m.decoder(&decoder{architecture: "SmolLM3ForCausalLM", modelled: smolLM3Modelled, inert: smolLM3Inert,
		layers: 36, hidden: 2048, intermediate: 11008, heads: 16, kvHeads: 4, vocab: 128256, positions: 32768,
		tied: true, theta: 2e6, check: (*importer).refuseOfDecoders, windows: windows,
		rotate: func([]int) []bool { return rotates },
		biased: projections{heads: attention, o: attention, mlp: m.truth("mlp_bias", false)}})
}

var smolLM3Modelled = append(slices.Clone(llamaModelled), "no_rope_layers", "no_rope_layer_interval")

var smolLM3Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	delete(inert, "no_rope_layers")
	inert["max_window_layers"] = whatever // of a Qwen2, which the class does not read
	return inert
}()

// rotating are the layers for which no_rope_layers has 1, or all but every last one of an interval.
func (m *importer) rotating(layers int) []bool {
	const field = "no_rope_layers"
	every := m.size("no_rope_layer_interval", 4, "layers")
	rotates := make([]bool, layers)
	for i := range rotates {
		rotates[i] = (i+1)%every != 0
	}
	if v, ok := m.value(field); ok {
		list, _ := v.([]any)
		if len(list) < layers {
			m.fail(codeField, field, "is %s; want a list of %d or more, each 0 or 1", spell(v), layers)
			return rotates
		}
		for i := range rotates {
			n, isInt := asInt(list[i])
			if rotates[i] = n == 1; !isInt || n != 0 && n != 1 {
				m.fail(codeField, field, "has %s; want 1 for a layer that rotates and 0 for one that does not",
					spell(list[i]))
			}
		}
	}
	if m.diags.Err() == nil && !slices.Contains(rotates, true) {
		m.fail(codeNotModelled, field, "leaves no layer a rotary embedding, which is not modelled; accepted: one or "+
			"more that have it")
	}
	return rotates
}

// smolLM3Windows are those of the layers that layer_types lists with one, or that do not rotate, if use_sliding_window
// is true.
func (m *importer) smolLM3Windows(rotates []bool) []int {
	layers := len(rotates)
	windows := make([]int, layers)
	if !m.truth("use_sliding_window", false) {
		m.refuseLayerTypes(fullAttention)
		return windows
	}
	window, types := m.windowOf(0), m.layerTypes(layers)
	for i := range windows {
		if types == nil && !rotates[i] || types != nil && types[i] == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}
