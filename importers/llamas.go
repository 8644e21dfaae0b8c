package importers

import (
	"encoding/json"
	"maps"
	"slices"

	"amkc/ir"
)

// This file imports families that are a Llama by another name: with defaults, switches and windows of their own, and
// nothing that a layer of a Llama has not.

// importInternLM3 builds the graph of an InternLM3, which transformers runs as a Llama: qkv_bias and bias are its
// attention_bias and mlp_bias, and must be alike. Defaults of absent fields are those of InternLM3Config.
func importInternLM3(m *importer) *ir.Graph {
	biased := m.eitherTruth("qkv_bias", "attention_bias")
	if m.eitherTruth("bias", "mlp_bias") != biased {
		m.fail(codeNotModelled, "bias", "is %t, and qkv_bias %t; accepted: the same in both", !biased, biased)
	}
	return m.decoder(&decoder{architecture: "LlamaForCausalLM", alias: "InternLM3ForCausalLM",
		modelled: internLM3Modelled, inert: internLM3Inert,
		layers: 48, hidden: 4096, intermediate: 10240, heads: 32, kvHeads: 2, headDim: 128, vocab: 128512,
		positions: 32768, eps: 1e-5, check: (*importer).refuseUnmodelled,
		biased: projections{heads: biased, o: biased, mlp: biased}})
}

var internLM3Modelled = append(slices.Clone(llamaModelled), "qkv_bias", "bias")

var internLM3Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	delete(inert, "qkv_bias")
	inert["auto_map"] = isCodeOf("internlm3", "InternLM3")
	return inert
}()

// eitherTruth reads a switch that has two names, and is false without either.
func (m *importer) eitherTruth(name, alias string) bool {
	value := m.truth(name, false)
	if _, there := m.value(name); !there {
		return m.truth(alias, false)
	}
	if m.truth(alias, value) != value {
		m.fail(codeField, alias, "is %t, and %s is %t; want one of them, or both the same", !value, name, value)
	}
	return value
}

// importIQuestCoder builds the graph of an IQuest Coder, which transformers runs as a Llama. Defaults of absent fields
// are those of IQuestCoderConfig.
func importIQuestCoder(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "LlamaForCausalLM", alias: "IQuestCoderForCausalLM",
		modelled: llamaModelled, inert: iquestCoderInert,
		layers: 80, hidden: 5120, intermediate: 27648, heads: 40, kvHeads: 8, headDim: 128, vocab: 76800,
		positions: 131072, eps: 1e-5, check: (*importer).refuseUnmodelled,
		biased: projections{heads: attention, o: attention, mlp: m.truth("mlp_bias", false)}})
}

var iquestCoderInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["auto_map"] = isCodeOf("iquestcoder", "IQuestCoder")
	return inert
}()

// importSeedOSS builds the graph of a Seed-OSS: a Llama whose queries, keys and values have biases by default, and
// whose o_proj has a switch of its own. Defaults of absent fields are those of transformers' SeedOssConfig.
func importSeedOSS(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "SeedOssForCausalLM",
		modelled: seedOSSModelled, inert: seedOSSInert,
		layers: 64, hidden: 4096, intermediate: 27648, heads: 80, kvHeads: 8, headDim: 128, vocab: 155136,
		positions: 524288, check: (*importer).refuseUnmodelled,
		biased: projections{heads: m.truth("attention_bias", true), o: m.truth("attention_out_bias", false),
			mlp: m.truth("mlp_bias", false)}})
}

var seedOSSModelled = append(slices.Clone(llamaModelled), "attention_out_bias")

var seedOSSInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["residual_dropout"] = whatever
	return inert
}()

// importCWM builds the graph of a CWM: a Llama with a window in all layers but every fourth. Defaults of absent fields
// are those of transformers' CwmConfig.
func importCWM(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "CwmForCausalLM", modelled: llamaModelled, inert: llamaInert,
		layers: 64, hidden: 6144, intermediate: 21504, heads: 48, kvHeads: 8, headDim: 128, vocab: 128256,
		positions: 131072, eps: 1e-5, theta: 1e6, scaling: llama3Scaling("1e6", "16"),
		check: (*importer).refuseOfCWM, windows: cwmWindows, biased: projections{mlp: m.truth("mlp_bias", false)}})
}

// llama3Scaling is an object of a rotation of type llama3, for models that were first trained on 8192 positions.
func llama3Scaling(theta, factor json.Number) map[string]any {
	return map[string]any{"rope_type": "llama3", "rope_theta": theta, "factor": factor,
		"low_freq_factor": json.Number("1"), "high_freq_factor": json.Number("4"),
		"original_max_position_embeddings": json.Number("8192")}
}

// cwmWindows are those of the layers that layer_types lists with one, or of all but the first and every fourth after.
func cwmWindows(m *importer, layers int) []int {
	windows, types := make([]int, layers), m.layerTypes(layers)
	window := m.size("sliding_window", 8192, "max_seq")
	for i := range windows {
		if types == nil && i%4 != 0 || types != nil && types[i] == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}

// refuseOfCWM refuses what the class of a CWM reads and a decoder does not model, and what only others have.
func (m *importer) refuseOfCWM() {
	m.refuseTrue("attention_bias", "use_sliding_window")
	if v, there := m.doc.Get("sliding_window"); there && v == nil {
		m.fail(codeField, "sliding_window", "is null; want an integer from 1 on")
	}
	m.refuseOfDecoders()
}
