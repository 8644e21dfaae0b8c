package importers

import (
	"maps"

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

var starcoder2Modelled = layerNormModelled(nil, "norm_epsilon", "use_bias", "sliding_window", "layer_types")

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
	return inert
}()

// refuseOfStarcoder2 refuses what the class of a StarCoder 2 reads and a decoder does not model.
func (m *importer) refuseOfStarcoder2() {
	m.refusePartial()
}
