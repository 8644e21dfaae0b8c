package importers

import (
	"maps"

	"amkc/ir"
)

// importStableLM builds the graph of a StableLM: a Llama with LayerNorm whose heads rotate in part. With
// use_parallel_residual, attention and MLP read one norm of the same vector; with qk_layernorm, each head of queries
// and of keys has a LayerNorm of its own, without a bias. Defaults of absent fields are those of transformers'
// StableLmConfig.
func importStableLM(m *importer) *ir.Graph {
	parallel := m.truth("use_parallel_residual", false)
	names := &tensorNames{body: "model.", head: "lm_head", parts: maps.Clone(layerNormedHeads)}
	if parallel {
		names.parts["post_norm"] = "input_layernorm"
	}
	return m.decoder(&decoder{architecture: "StableLmForCausalLM", modelled: stableLMModelled, inert: stableLMInert,
		fields: map[string]string{"rms_norm_eps": "layer_norm_eps"},
		layers: 32, hidden: 2560, intermediate: 6912, heads: 32, kvHeads: 32, vocab: 50304, positions: 4096, eps: 1e-5,
		turned: 0.25, sliced: true, layerNorm: &layerNorm{biased: true}, parallel: parallel,
		normedHeads: m.truth("qk_layernorm", false), headNorms: headNorms{gains: separateGains},
		biased: projections{heads: m.truth("use_qkv_bias", false)}, names: names,
		check: (*importer).refuseOfStableLM})
}

var stableLMModelled = layerNormModelled([]string{"head_dim"}, "layer_norm_eps", "use_parallel_residual",
	"use_qkv_bias", "qk_layernorm")

// layerNormedHeads are the parts of norms of heads in families that call them so.
var layerNormedHeads = map[string]string{"q_norm": "self_attn.q_layernorm", "k_norm": "self_attn.k_layernorm"}

var stableLMInert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	delete(inert, "use_parallel_residual")
	// The class reads layer_norm_eps, num_attention_heads and partial_rotary_factor for these.
	inert["norm_eps"], inert["num_heads"], inert["rope_pct"] = whatever, whatever, whatever
	inert["rotary_scaling_factor"] = isNumber(1).does("angles are scaled")
	return inert
}()

// refuseOfStableLM refuses what the class of a StableLM reads and a decoder does not model.
func (m *importer) refuseOfStableLM() {
	m.refuseGate()
}
