package importers

import (
	"maps"
	"slices"
)

// What the families with LayerNorm share.

// layerNormModelled are the fields of such a family: those of a Llama that its class reads too, but for some, and
// others.
func layerNormModelled(without []string, others ...string) []string {
	llamas := []string{"rms_norm_eps", "attention_bias", "mlp_bias", "use_sliding_window", "sliding_window",
		"layer_types"}
	return append(slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
		return slices.Contains(llamas, field) || slices.Contains(without, field)
	}), others...)
}

// layerNormInert are the inert fields of such a family, but for those that it models. Its class reads none of what only
// families with RMSNorm have.
var layerNormInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["rms_norm_eps"] = whatever
	inert["attention_bias"] = isFalse.does(biases)
	inert["mlp_bias"] = isFalse.does(biases)
	inert["use_sliding_window"] = isFalse.does(windows)
	inert["sliding_window"] = isNull.does(windows)
	inert["layer_types"] = allText(fullAttention).does(windows)
	return inert
}()

const (
	biases  = "the projections have biases"
	windows = "some layers attend to fewer positions"
)

// activations are those of MLPs without a gate, by what transformers calls them.
var activations = map[string]string{
	"gelu": "gelu", "gelu_python": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh",
	"gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh", "gelu_python_tanh": "gelu_tanh",
	"relu": "relu", "relu2": "relu2",
}

// activation reads the activation of an MLP without a gate, and returns its node. One that the family alone has is what
// an absent field means, and called as its node.
func (m *importer) activation(field, absent string) string {
	name := m.text(field, absent)
	node, ok := activations[name]
	switch {
	case ok:
		return node
	case name != absent:
		known := append(slices.Collect(maps.Keys(activations)), absent)
		slices.Sort(known)
		m.fail(codeNotModelled, field, "%s is not modelled; accepted: %s", spell(name), quoted(slices.Compact(known)))
	}
	return absent
}
