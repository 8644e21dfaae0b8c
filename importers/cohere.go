package importers

import (
	"maps"

	"amkc/ir"
)

// importCohere builds the graph of a Command R: attention and MLP read one norm of the same vector, which has no bias,
// neighbours are rotation pairs, and logits are multiplied. With use_qk_norm, as in a Command R+, each head of queries
// and of keys has a LayerNorm with a weight of its own. Defaults of absent fields are those of transformers'
// CohereConfig.
func importCohere(m *importer) *ir.Graph {
	d := cohere(m, "CohereForCausalLM", cohereModelled, cohereInert)
	d.theta, d.normedHeads, d.headNorms.gains = 5e5, m.truth("use_qk_norm", false), stackedGains
	return m.decoder(d)
}

func cohere(m *importer, architecture string, modelled []string, inert map[string]known) *decoder {
	attention := m.truth("attention_bias", false)
	d := &decoder{architecture: architecture, modelled: modelled, inert: inert,
		fields: map[string]string{"rms_norm_eps": "layer_norm_eps"},
		layers: 40, hidden: 8192, intermediate: 22528, heads: 64, vocab: 256000, positions: 8192, eps: 1e-5, tied: true,
		layerNorm: &layerNorm{}, parallel: true, interleaved: true, logitsScale: 0.0625,
		biased: projections{heads: attention, o: attention},
		names: &tensorNames{body: "model.", head: "lm_head",
			parts: map[string]string{"post_norm": "input_layernorm"}},
		check: (*importer).refuseOfDecoders}
	if v, ok := m.value("logit_scale"); ok {
		d.logitsScale = m.single("logit_scale", v)
	}
	return d
}

var cohereModelled = layerNormModelled(nil, "layer_norm_eps", "attention_bias", "logit_scale", "use_qk_norm")

var cohereInert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	delete(inert, "attention_bias")
	delete(inert, "logit_scale")
	delete(inert, "use_qk_norm")
	return inert
}()

// importCohere2 builds the graph of a Command R7B or a Command A: a Command R whose layers see a window and rotate, but
// for every fourth, which does neither. Defaults of absent fields are those of transformers' Cohere2Config.
func importCohere2(m *importer) *ir.Graph {
	d := cohere(m, "Cohere2ForCausalLM", cohere2Modelled, cohere2Inert)
	d.windows, d.rotate, d.check = cohere2Windows, rotatesWindows, (*importer).refuseOfCohere2
	return m.decoder(d)
}

var cohere2Modelled = append(layerNormModelled(nil, "layer_norm_eps", "attention_bias", "logit_scale",
	"sliding_window", "layer_types"), "sliding_window_pattern")

// cohere2Inert are the inert fields of a Command R7B. Published configs name the form of the rotation, of the caches
// and of the block in fields that the class does not read.
var cohere2Inert = func() map[string]known {
	inert := maps.Clone(cohereInert)
	inert["use_qk_norm"] = isFalse.does(headNorm)
	for _, field := range cohere2Modelled {
		delete(inert, field)
	}
	inert["cache_implementation"] = whatever
	inert["rotary_pct"] = isNumber(1).does("a part of each head is rotated")
	inert["order_of_interleaved_layers"] = isText("local_attn_first").does("other layers have no window")
	inert["position_embedding_type"] = isText("rope_gptj").does("positions enter otherwise")
	inert["use_embedding_sharing"], inert["use_parallel_block"] = isTrue, isTrue
	inert["use_parallel_embedding"], inert["use_gated_activation"] = whatever, isTrue // the former is of several GPUs
	inert["layer_switch"] = isNumber(4)
	return inert
}()

func cohere2Windows(m *importer, layers int) []int {
	return m.windowsOfPattern(layers, m.size("sliding_window_pattern", 4, "layers"))
}

// rotatesWindows rotates in layers that see a window.
func rotatesWindows(windows []int) []bool {
	out := make([]bool, len(windows))
	for i, window := range windows {
		out[i] = window > 0
	}
	return out
}

// refuseOfCohere2 refuses what the class of a Command R7B reads and a decoder does not model.
func (m *importer) refuseOfCohere2() {
	if v, there := m.doc.Get("sliding_window"); there && v == nil {
		m.fail(codeField, "sliding_window", "is null; want an integer from 1 on; layer_types may list layers "+
			"without a window")
	}
	m.refuseOfDecoders()
}
