package passes

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importStarcoder2 builds the graph of a StarCoder 2: LayerNorm, an MLP without a gate, and biases on every projection
// unless use_bias says otherwise. Defaults of absent fields are those of transformers' Starcoder2Config.
func importStarcoder2(m *importer) *ir.Graph {
	biased := m.truth("use_bias", true)
	return m.decoder(&decoder{architecture: "Starcoder2ForCausalLM", modelled: starcoder2Modelled,
		inert: starcoder2Inert, fields: map[string]string{"rms_norm_eps": "norm_epsilon"},
		layers: 30, hidden: 3072, intermediate: 12288, heads: 24, kvHeads: 2, vocab: 49152, positions: 4096, tied: true,
		eps: 1e-5, layerNorm: &layerNorm{biased: true}, act: m.activation("hidden_act", "gelu_pytorch_tanh"),
		biased: projections{heads: biased, o: biased, mlp: biased},
		names: &tensorNames{body: "model.", head: "lm_head",
			parts: map[string]string{"up_proj": "mlp.c_fc", "down_proj": "mlp.c_proj"}},
		check: (*importer).refuseOfStarcoder2, windows: phi3Windows})
}

var starcoder2Modelled = append(slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return slices.Contains([]string{"rms_norm_eps", "attention_bias", "mlp_bias", "use_sliding_window"}, field)
}), "norm_epsilon", "use_bias")

// starcoder2Inert are the inert fields of a StarCoder 2. Published configs have some of the code that it was trained
// with, which the class does not read.
var starcoder2Inert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	inert["residual_dropout"], inert["embedding_dropout"] = whatever, whatever
	inert["activation_function"], inert["layer_norm_epsilon"] = whatever, whatever
	inert["attention_softmax_in_fp32"], inert["scale_attention_softmax_in_fp32"] = whatever, whatever
	inert["mlp_type"] = isText("default").does("the MLP may have a gate")
	inert["norm_type"] = isText("layer_norm").does("the norms may be others")
	inert["scale_attn_weights"] = isTrue.does("scores are not scaled")
	inert["use_sliding_window"] = llamaInert["use_parallel_residual"].does("some layers attend to fewer positions")
	return inert
}()

// layerNormInert are the inert fields of families with LayerNorm, whose classes read none that RMSNorm has.
var layerNormInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["rms_norm_eps"] = whatever
	inert["attention_bias"] = isFalse.does("the projections have biases")
	inert["mlp_bias"] = isFalse.does("the projections have biases")
	return inert
}()

// activations are those of MLPs without a gate, by what transformers calls them.
var activations = map[string]string{
	"gelu": "gelu", "gelu_python": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh",
	"gelu_fast": "gelu_tanh", "relu": "relu", "relu2": "relu2",
}

// activation reads the activation of an MLP without a gate, and returns its node.
func (m *importer) activation(field, absent string) string {
	name := m.text(field, absent)
	node, ok := activations[name]
	if !ok {
		m.fail(codeNotModelled, field, "%s is not modelled; accepted: %s", spell(name),
			quoted(slices.Sorted(maps.Keys(activations))))
	}
	return node
}

// refuseOfStarcoder2 refuses what the class of a StarCoder 2 reads and a decoder does not model.
func (m *importer) refuseOfStarcoder2() {
	m.refusePartial()
	m.refuseQuantised()
}
