package importers

import (
	"maps"

	"amkc/ir"
)

// importPhi builds the graph of a Phi-1, 1.5 or 2: attention and MLP read one norm of the same vector, every linear has
// a bias, that of the logits too, and heads rotate in part; with qk_layernorm, they have LayerNorms before. Defaults of
// absent fields are those of transformers' PhiConfig.
func importPhi(m *importer) *ir.Graph {
	names := &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{"final_norm": "final_layernorm",
		"post_norm": "input_layernorm", "o_proj": "self_attn.dense", "up_proj": "mlp.fc1", "down_proj": "mlp.fc2"}}
	maps.Copy(names.parts, layerNormedHeads)
	return m.decoder(&decoder{architecture: "PhiForCausalLM", modelled: phiModelled, inert: layerNormInert,
		fields: map[string]string{"rms_norm_eps": "layer_norm_eps"},
		layers: 24, hidden: 2048, intermediate: 8192, heads: 32, vocab: 51200, positions: 2048, eps: 1e-5, turned: 0.5,
		sliced: true, layerNorm: &layerNorm{biased: true}, act: m.activation("hidden_act", "gelu_new"), parallel: true,
		biased: projections{heads: true, o: true, mlp: true}, biasedHead: true,
		normedHeads: m.truth("qk_layernorm", false), headNorms: headNorms{biased: true}, names: names})
}

var phiModelled = layerNormModelled(nil, "layer_norm_eps", "qk_layernorm")
