package importers

import (
	"cmp"
	"maps"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// This file imports the language models of Qwens that see images. A token of an image has three positions, and each
// pair of a head is rotated by one of them. Those of a token of text are equal, so that it is rotated as in any Qwen.

// importQwen2VLText builds the graph of the language model of a Qwen2-VL or a Qwen2.5-VL: a Qwen2. Defaults of absent
// fields are those of transformers' Qwen2VLTextConfig, which are Qwen2_5_VLTextConfig's.
func importQwen2VLText(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "Qwen2ForCausalLM", modelled: qwen2Modelled, inert: qwen2VLInert,
		layers: 80, hidden: 8192, intermediate: 29568, heads: 64, kvHeads: 8, vocab: 152064, positions: 32768,
		eps: 1e-5, check: (*importer).refuseOfQwen2VL, biased: projections{heads: true},
		windows: func(m *importer, layers int) []int { return m.windowsFrom(80, layers) },
		ropes: func(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
			return m.ropeOfParts(1e6, true, model, trained), nil
		}})
}

// qwen2VLInert are the inert fields of a Qwen2, whose positions have three parts where images are.
var qwen2VLInert = func() map[string]known {
	inert := maps.Clone(qwen2Inert)
	inert["use_mrope"] = whatever
	return inert
}()

// refuseOfQwen2VL refuses a size of heads that the class reads for frequencies alone.
func (m *importer) refuseOfQwen2VL() {
	if _, ok := m.value("head_dim"); ok {
		heads, hidden := m.size("num_attention_heads", 64, "heads"), m.size("hidden_size", 8192, "hidden")
		if m.size("head_dim", 1, "head_dim")*heads != hidden {
			m.fail(codeNotModelled, "head_dim", "is not hidden_size over num_attention_heads, which the class takes; "+
				"accepted: that")
		}
	}
	m.refuseOfDecoders()
}

// importQwen3VLText builds the graph of the language model of a Qwen3-VL: a Qwen3 without windows. Defaults of absent
// fields are those of transformers' Qwen3VLTextConfig.
func importQwen3VLText(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "Qwen3ForCausalLM", modelled: qwen3VLModelled, inert: qwen3VLInert,
		layers: 32, hidden: 4096, intermediate: 22016, heads: 32, kvHeads: 32, headDim: 128, vocab: 151936,
		positions: 128000, check: (*importer).refuseOfDecoders, normedHeads: true,
		biased: projections{heads: attention, o: attention},
		ropes: func(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
			return m.ropeOfParts(5e5, false, model, trained), nil
		}})
}

var qwen3VLModelled = slices.DeleteFunc(slices.Clone(qwen3Modelled), func(field string) bool {
	return slices.Contains([]string{"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"}, field)
})

// qwen3VLInert are the inert fields of a Qwen3, and those of windows, which the class does not read.
var qwen3VLInert = func() map[string]known {
	inert := maps.Clone(qwen3Inert)
	inert["use_mrope"], inert["max_window_layers"] = whatever, whatever
	inert["sliding_window"] = whatever
	inert["use_sliding_window"] = isFalse.does(windows)
	inert["layer_types"] = allText(fullAttention).does(windows)
	return inert
}()

// ropeOfParts reads a rotary embedding whose pairs are shared among three positions. Some classes call a plain one
// mrope.
func (m *importer) ropeOfParts(theta float64, mrope bool, model *ir.Model, trained int) ir.Rope {
	where, params := m.ropeObject()
	if params != nil && mrope {
		plain := map[string]any{}
		for _, key := range params.Keys() {
			plain[key] = get(params, key)
			if (key == "type" || key == "rope_type") && plain[key] == "mrope" {
				plain[key] = defaultRope
			}
		}
		params = checkpoint.NewObject(plain)
	}
	r := m.ropeReader(where, params, m.ropeTheta("rope_theta", theta, where, params), model, trained)
	r.extra = partsOfPositions
	if params != nil {
		r.checkParts()
	}
	return r.read()
}

// partsOfPositions are the keys that say how positions of three parts share pairs. Of text the parts are equal.
var partsOfPositions = []string{"mrope_section", "mrope_interleaved"}

// checkParts demands that the pairs of a head that turn are shared among three positions.
func (r *ropeReader) checkParts() {
	if v, there := r.params.Get("mrope_interleaved"); there && v != nil {
		if _, ok := v.(bool); !ok {
			r.fail(codeRope, r.at("mrope_interleaved"), "is %s; want true or false", spell(v))
		}
	}
	v, there := r.params.Get("mrope_section")
	if !there {
		return
	}
	list, _ := v.([]any)
	sum := 0
	for _, part := range list {
		n, ok := asInt(part)
		if !ok || n < 0 || n > r.headDim {
			list = nil
			break
		}
		sum += n
	}
	pairs := cmp.Or(r.turned, r.headDim) / 2
	if r.diags.Err() == nil && (len(list) != 3 || sum != pairs) {
		r.fail(codeRope, r.at("mrope_section"), "is %s; want three integers whose sum is the %d pairs of a head",
			spell(v), pairs)
	}
}
