package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importExaone4 builds the graph of an EXAONE 4: no norm before a branch, and one at its end; a norm of each head of
// queries and keys; and windows in all layers but every fourth, which does not rotate. Defaults of absent fields are
// those of transformers' Exaone4Config.
func importExaone4(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "Exaone4ForCausalLM", modelled: exaone4Modelled, inert: exaone4Inert,
		layers: 32, hidden: 4096, intermediate: 16384, heads: 32, kvHeads: 32, vocab: 102400, positions: 2048,
		eps: 1e-5, check: (*importer).refuseOfDecoders, windows: exaone4Windows, rotate: m.rotatingExaone4,
		normedHeads: true, bareBranches: true, postNorms: true, names: bareNames})
}

// bareNames are those of families that have a norm at the end of each branch alone.
var bareNames = &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{
	"post_attn_norm": "post_attention_layernorm", "post_mlp_norm": "post_feedforward_layernorm"}}

var exaone4Modelled = append(slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return slices.Contains([]string{"attention_bias", "mlp_bias", "use_sliding_window"}, field)
}), "sliding_window_pattern")

// exaone4Inert are the inert fields of an EXAONE 4, which has no biases, and windows without a switch.
var exaone4Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["attention_bias"] = isFalse.does("the projections have biases")
	inert["mlp_bias"] = isFalse.does("the projections have biases")
	return inert
}()

// exaone4Windows are those of all layers but every fourth, or as often as sliding_window_pattern says, or of those that
// layer_types lists; none where sliding_window is null.
func exaone4Windows(m *importer, layers int) []int {
	window := m.windowOf(4096)
	if window == 0 {
		m.refuseLayerTypes(fullAttention)
		return make([]int, layers)
	}
	types := m.layerTypes(layers)
	if types == nil {
		return m.windowsOfPattern(layers, m.size("sliding_window_pattern", 4, "layers"))
	}
	windows := make([]int, layers)
	for i, kind := range types {
		if kind == slidingAttention {
			windows[i] = window
		}
	}
	return windows
}

// rotatingExaone4 are the layers with a window, or all where the config has none.
func (m *importer) rotatingExaone4(windows []int) []bool {
	v, there := m.doc.Get("sliding_window")
	rotates := make([]bool, len(windows))
	for i, window := range windows {
		rotates[i] = window > 0 || there && v == nil
	}
	return rotates
}
