package importers

import (
	"maps"

	"amkc/ir"
)

// importGPTNeoX builds the graph of a GPT-NeoX, as Pythia is: biases, an MLP without a gate, heads that rotate in part,
// and queries, keys and values of a head side by side in one tensor. Attention and MLP read the same vector, each by a
// norm of its own, unless use_parallel_residual is false. Defaults of absent fields are those of transformers'
// GPTNeoXConfig.
func importGPTNeoX(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", true)
	return m.decoder(&decoder{architecture: "GPTNeoXForCausalLM", modelled: gptNeoXModelled, inert: gptNeoXInert,
		fields: map[string]string{"rms_norm_eps": "layer_norm_eps", "rope_theta": "rotary_emb_base",
			partialFactor: "rotary_pct", "num_key_value_heads": ""},
		layers: 44, hidden: 6144, intermediate: 24576, heads: 64, vocab: 50432, positions: 2048, eps: 1e-5,
		turned:    0.25,
		layerNorm: &layerNorm{biased: true}, act: m.activation("hidden_act", "gelu"),
		parallel: m.truth("use_parallel_residual", true),
		biased:   projections{heads: attention, o: attention, mlp: true},
		stacks:   stackedHeads("attention.query_key_value"),
		names:    m.gptNeoXNames()})
}

var gptNeoXModelled = layerNormModelled([]string{"num_key_value_heads", "head_dim", "rope_theta", partialFactor},
	"layer_norm_eps", "rotary_emb_base", "rotary_pct", "use_parallel_residual",
	"attention_bias")

var gptNeoXInert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	for _, field := range gptNeoXModelled {
		delete(inert, field)
	}
	return inert
}()

// gptNeoXNames are those of the files: published checkpoints call the matrix of the logits embed_out.
func (m *importer) gptNeoXNames() *tensorNames {
	names := &tensorNames{body: "gpt_neox.", head: "embed_out", parts: map[string]string{
		"embed": "embed_in", "final_norm": "final_layer_norm", "o_proj": "attention.dense",
		"up_proj": "mlp.dense_h_to_4h", "down_proj": "mlp.dense_4h_to_h"}}
	if m.hasTensor("lm_head.weight") {
		names.head = "lm_head"
	}
	return names
}

// stackedHeads are queries, keys and values in one tensor, head by head.
func stackedHeads(part string) func(m *ir.Model) []stack {
	return func(m *ir.Model) []stack {
		hd := m.HeadDim
		return []stack{{part, 3 * m.Heads * hd, map[string][]int{"q_proj": {0, hd, 3 * hd},
			"k_proj": {hd, 2 * hd, 3 * hd}, "v_proj": {2 * hd, 3 * hd, 3 * hd}}}}
	}
}
