package importers

import (
	"encoding/json"
	"maps"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// importGemma4Text builds the graph of a Gemma 4 that reads text alone, in its dense form: heads of layers without a
// window have a size of their own, and perhaps their keys serve as values. Each head of the values has a norm without
// weights, norms multiply by w, scores are not scaled, and a layer multiplies its sum by a number of the checkpoint.
// Defaults of absent fields are those of transformers' Gemma4TextConfig.
func importGemma4Text(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	var windows []int
	return m.decoder(&decoder{architecture: "Gemma4ForCausalLM", modelled: gemma4Modelled, inert: gemma4Inert,
		layers: 30, hidden: 2304, intermediate: 9216, heads: 8, kvHeads: 4, headDim: 256, vocab: 262144,
		positions: 131072, tied: true, perLayer: []string{"head_dim", "num_key_value_heads"}, sizes: gemma4Sizes,
		check: (*importer).refuseOfGemma4, gate: m.gateOf("hidden_activation", tanhGELU),
		biased:     projections{heads: attention, o: attention},
		embedScale: rootOfHidden, postNorms: true, normedHeads: true, normedValues: true,
		keysServe: m.truth("attention_k_eq_v", false), layerFactor: "layer_scalar",
		names: postNormNames, attnScale: 1, logitsCap: m.softCapOf("final_logit_softcapping", 0),
		windows: func(m *importer, layers int) []int {
			windows = gemma4Windows(m, layers)
			return windows
		},
		ropes: func(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
			return gemma4Ropes(m, model, windows, trained)
		}})
}

// gemma4Modelled are the fields that the class reads in its dense form.
var gemma4Modelled = append(without(gemma3Modelled, "mlp_bias", "use_sliding_window", "sliding_window_pattern",
	"rope_local_base_freq", "rope_theta", "rope_scaling", "partial_rotary_factor", "query_pre_attn_scalar",
	"original_max_position_embeddings"), "attention_k_eq_v", "global_head_dim", "num_global_key_value_heads",
	perLayerConfig)

const (
	embeddingsOfLayers = "each layer has embeddings of its own"
	besideExperts      = "layers have experts besides an MLP"
)

var gemma4Inert = func() map[string]known {
	inert := maps.Clone(gemma3Inert)
	for field, k := range map[string]known{
		"use_bidirectional_attention": {accept: func(v any) bool { return v == nil || v == "vision" },
			want: `null or "vision"`, effect: bothWays}, // that of images
		"hidden_size_per_layer_input": isNumber(0).does(embeddingsOfLayers),
		"vocab_size_per_layer_input":  whatever, // of those
		"num_kv_shared_layers":        isNumber(0).does("layers share keys and values"),
		"use_double_wide_mlp":         whatever, // of layers that share
		"enable_moe_block":            isFalse.does(besideExperts),
		"num_experts":                 whatever, "top_k_experts": whatever, "moe_intermediate_size": whatever,
		"output_router_logits": whatever, // of those
		"mlp_bias":             whatever, "use_sliding_window": whatever,
	} {
		inert[field] = k
	}
	delete(inert, perLayerConfig)
	return inert
}()

// refuseOfGemma4 refuses what the class of a Gemma 4 reads and a decoder does not model.
func (m *importer) refuseOfGemma4() {
	if _, there := m.doc.Get("hidden_size_per_layer_input"); !there {
		m.fail(codeNotModelled, "hidden_size_per_layer_input", "is missing, which stands for 256: %s, which is not "+
			"modelled; accepted: 0", embeddingsOfLayers)
	}
	m.refuseNull("sliding_window")
}

func (m *importer) refuseNull(field string) {
	if v, there := m.doc.Get(field); there && v == nil {
		m.fail(codeField, field, "is null; want an integer from 1 on")
	}
}

// gemma4Windows are those of all layers but every sixth, or of those that layer_types lists. The last one has none.
func gemma4Windows(m *importer, layers int) []int {
	windows, types := make([]int, layers), m.layerTypes(layers)
	window := m.size("sliding_window", 512, "max_seq")
	for i := range layers - 1 {
		if types == nil && (i+1)%6 != 0 || types != nil && types[i] == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}

// gemma4Sizes are the heads of layers without a window, as published configs have them.
func gemma4Sizes(m *importer, windows []int, layers []ir.LayerFacts) {
	const kvHeads = "num_global_key_value_heads"
	m.refuseNull("global_head_dim")
	size := m.size("global_head_dim", 512, "head_dim")
	if m.diags.Err() == nil && size%2 != 0 {
		m.fail(codeField, "global_head_dim", "is %d; want an even number, because a rotation takes two elements", size)
	}
	own := 0
	if m.truth("attention_k_eq_v", false) {
		own = m.size(kvHeads, layers[0].KVHeads, "kv_heads")
	}
	for i := range layers {
		if windows[i] > 0 {
			continue
		}
		if layers[i].HeadDim = size; own > 0 {
			layers[i].KVHeads = own
		}
		if m.diags.Err() == nil && layers[i].Heads%layers[i].KVHeads != 0 {
			m.fail(codeField, kvHeads, "is %d; want a divisor of num_attention_heads, %d", own, layers[i].Heads)
		}
	}
}

// gemma4Ropes reads the rotary embedding of layers without a window, of which a quarter of the pairs turn where the
// config has none, and that of layers with one.
func gemma4Ropes(m *importer, model *ir.Model, windows []int, trained int) (ir.Rope, *ir.Rope) {
	full := checkpoint.NewObject(map[string]any{"rope_type": "proportional", partialFactor: json.Number("0.25"),
		"rope_theta": json.Number("1e6")})
	sliding := checkpoint.NewObject(map[string]any{"rope_type": defaultRope, "rope_theta": json.Number("1e4")})
	fullWhere, slidingWhere := "rope_parameters."+fullAttention, "rope_parameters."+slidingAttention
	if _, parts := m.ropeObject(); parts != nil {
		fullWhere, full, slidingWhere, sliding = m.ropeParts(parts)
	}
	read := func(where string, of *checkpoint.Object, has func(window int) bool) ir.Rope {
		sized, found := *model, false
		for i, window := range windows {
			if !has(window) {
				continue
			}
			if size := model.Of(i).HeadDim; found && size != sized.HeadDim {
				m.fail(codeField, perLayerConfig, "layer %d has heads of %d elements, and another of its kind of %d; "+
					"want the same, because they share a rotation", i, size, sized.HeadDim)
			}
			sized.HeadDim, found = model.Of(i).HeadDim, true
		}
		if of == nil || get(of, "rope_theta") == nil {
			if found {
				m.fail(codeRope, where, "is missing, or has no rope_theta; want both for each kind of layers")
			}
			return ir.Rope{InvFreq: make([]float32, 1), Scale: 1}
		}
		m.refuseUnread(where, of)
		return m.ropeOf(where, of, m.ropeTheta("", 1, where, of), &sized, trained)
	}
	rope := read(fullWhere, full, func(window int) bool { return window == 0 })
	windowed := read(slidingWhere, sliding, func(window int) bool { return window > 0 })
	return rope, &windowed
}
