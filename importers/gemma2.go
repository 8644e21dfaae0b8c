package importers

import (
	"maps"
	"math"
	"slices"

	"amkc/ir"
)

// importGemma2 builds the graph of a Gemma 2: a Gemma with a norm at the end of each branch too, soft caps, a scale of
// scores of its own, and windows in every other layer. Defaults of absent fields are those of transformers'
// Gemma2Config.
func importGemma2(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "Gemma2ForCausalLM",
		modelled: gemma2Modelled, inert: gemma2Inert,
		layers: 26, hidden: 2304, intermediate: 9216, heads: 8, kvHeads: 4, headDim: 256, vocab: 256000,
		positions: 8192, tied: true,
		check: (*importer).refuseOfGemma2, windows: gemma2Windows, gate: m.gateOf("hidden_activation", tanhGELU),
		biased:     projections{heads: attention, o: attention},
		unitOffset: true, embedScale: rootOfHidden, postNorms: true, names: postNormNames,
		attnScale: m.scoreScale("query_pre_attn_scalar", 256),
		attnCap:   m.softCapOf("attn_logit_softcapping", 50), logitsCap: m.softCapOf("final_logit_softcapping", 30)})
}

// gemma2Modelled are the fields that the class reads: hidden_activation, and not hidden_act.
var gemma2Modelled = append(slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return field == "hidden_act"
}), "hidden_activation", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping")

var gemma2Inert = func() map[string]known {
	inert := maps.Clone(gemmaInert)
	for _, field := range gemma2Modelled {
		delete(inert, field)
	}
	inert["hidden_act"] = whatever
	inert["cache_implementation"] = whatever // how transformers keeps the cache
	inert["sliding_window_size"] = whatever  // which the class does not read
	return inert
}()

// scoreScale reads the number of which the inverse root multiplies scores.
func (m *importer) scoreScale(field string, absent float64) float64 {
	if v, ok := m.value(field); ok {
		absent = m.single(field, v)
	}
	return 1 / math.Sqrt(absent)
}

// softCapOf reads a soft cap, of which null means none.
func (m *importer) softCapOf(field string, absent float64) float64 {
	v, there := m.doc.Get(field)
	switch {
	case !there:
		return absent
	case v == nil:
		return 0
	}
	return m.single(field, v)
}

// gemma2Windows are those of the first layer and every other one after it, or of those that layer_types lists.
func gemma2Windows(m *importer, layers int) []int { return m.windowsOfPattern(layers, 2) }

// windowsOfPattern are those of all layers but every last one of n, or of those that layer_types lists.
func (m *importer) windowsOfPattern(layers, every int) []int {
	windows, types := make([]int, layers), m.layerTypes(layers)
	window := m.size("sliding_window", 4096, "max_seq")
	for i := range windows {
		if types == nil && (i+1)%every != 0 || types != nil && types[i] == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}

// refuseOfGemma2 refuses what the class of a Gemma 2 reads and a decoder does not model, and what only others have.
func (m *importer) refuseOfGemma2() {
	m.refuseTrue("mlp_bias", "use_sliding_window")
	if v, there := m.doc.Get("sliding_window"); there && v == nil {
		m.fail(codeField, "sliding_window", "is null; want an integer from 1 on; layer_types may list layers "+
			"without a window")
	}
	m.refusePartial()
}
