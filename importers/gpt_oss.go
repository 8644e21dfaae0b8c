package importers

import (
	"encoding/json"
	"maps"

	"amkc/ir"
)

// importGPTOSS builds the graph of a gpt-oss: experts with biases and a gate within bounds, sinks in attention, and a
// window in every other layer from the first on. Defaults of absent fields are those of transformers' GptOssConfig.
func importGPTOSS(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", true)
	e := m.readExperts([]string{"num_local_experts", "num_experts"}, 128, 4, "intermediate_size", 2880)
	e.ofChosen, e.biased, e.router = true, true, "mlp.router"
	e.matrices, e.blocks, e.separate = transposedExperts, expertBlocks, biasedExperts
	e.limit, e.alpha = m.above("swiglu_limit", 7), m.above("swiglu_alpha", 1.702)
	return m.decoder(&decoder{architecture: "GptOssForCausalLM", modelled: gptOSSModelled, inert: gptOSSInert,
		layers: 36, hidden: 2880, intermediate: 2880, heads: 64, kvHeads: 8, headDim: 64, vocab: 201088,
		positions: 131072, eps: 1e-5, theta: 150000, scaling: gptOSSScaling, windows: gptOSSWindows,
		check: (*importer).refuseOfGPTOSS, experts: &e, sinks: true,
		biased: projections{heads: attention, o: attention}})
}

// gptOSSScaling is the object of the rotation where the config has none.
var gptOSSScaling = map[string]any{"rope_type": "yarn", "factor": json.Number("32"), "beta_fast": json.Number("32"),
	"beta_slow": json.Number("1"), "truncate": false, "original_max_position_embeddings": json.Number("4096")}

// gptOSSWindows are those of the layers that layer_types lists with one, or of every other layer.
func gptOSSWindows(m *importer, layers int) []int {
	windows, types := make([]int, layers), m.layerTypes(layers)
	window := m.windowOf(128)
	for i := range windows {
		if types == nil && i%2 == 0 || types != nil && types[i] == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}

func (m *importer) refuseOfGPTOSS() {
	m.refuseTrue("mlp_bias", "use_sliding_window")
	m.refuseOfDecoders()
}

// above reads a positive number.
func (m *importer) above(field string, absent float64) float64 {
	if v, ok := m.value(field); ok {
		return m.single(field, v)
	}
	return absent
}

var gptOSSModelled = expertsModelled(llamaModelled, "num_local_experts", "num_experts", "swiglu_alpha", "swiglu_limit")

var gptOSSInert = func() map[string]known {
	inert := expertsInert(llamaInert, gptOSSModelled)
	// Names that its own code has for fields which transformers reads under others.
	maps.Copy(inert, map[string]known{"experts_per_token": whatever, "initial_context_length": whatever})
	return inert
}()
