package importers

import (
	"maps"

	"amkc/ir"
)

// This file imports families of Qwen that have a gated delta rule in place of attention in most layers. The others have
// attention whose output is multiplied by a sigmoid of a gate, and norms multiply by 1 + w.

// importQwen35Text builds the graph of the language model of a Qwen3.5. Defaults of absent fields are those of
// transformers' Qwen3_5TextConfig.
func importQwen35Text(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "Qwen3_5ForCausalLM", modelled: qwen35Modelled, inert: qwen35Inert,
		layers: 32, hidden: 4096, intermediate: 12288, heads: 16, kvHeads: 4, headDim: 256, vocab: 248320,
		positions: 32768, unitOffset: true, normedHeads: true, gatedHeads: true, turned: 0.25, ropeOfParts: true,
		check: (*importer).refuseGate, stacks: gatedHeads, mixers: (*importer).deltaRules, names: qwen35Names,
		biased: projections{heads: attention, o: attention}})
}

// gatedHeads are the queries and their gates: of each head, the rows of one are before those of the other.
func gatedHeads(model *ir.Model) []stack {
	n, d := model.Heads*model.HeadDim, model.HeadDim
	return []stack{{"self_attn.q_proj", 2 * n, map[string][]int{"q_proj": {0, d, 2 * d}, "g_proj": {d, 2 * d, 2 * d}}}}
}

// deltaRules are those of all layers.
func (m *importer) deltaRules(model *ir.Model) []*mixer {
	const most = "head_dim"
	keyHeads, heads := m.size("linear_num_key_heads", 16, "heads"), m.size("linear_num_value_heads", 32, "heads")
	keys, values := m.size("linear_key_head_dim", 128, most), m.size("linear_value_head_dim", 128, most)
	count := m.taps("linear_conv_kernel_dim", 4)
	if m.diags.Err() == nil && heads%keyHeads != 0 {
		m.fail(codeField, "linear_num_value_heads", "is %d; want a multiple of linear_num_key_heads, %d", heads,
			keyHeads)
	}
	h, all := model.Hidden, 2*keyHeads*keys+heads*values
	part := func(name string) string { return m.names.inLayer("linear_attn." + name) }
	x := &mixer{kind: "linear_attention", last: "state_out", facts: ir.Mixer{Taps: count, StateHeads: heads,
		StateKeyHeads: keyHeads, StateKeys: keys, StateValues: values}}
	x.nodes = func(b *nodes, in string, linear linearNode) (string, int) {
		mixed := linear("s_proj", in, all, h, false)
		gate := linear("z_proj", in, heads*values, h, false)
		beta, decay := linear("b_proj", in, heads, h, false), linear("a_proj", in, heads, h, false)
		out := b.add("delta_rule", "delta_rule", []int{heads * values}, []string{mixed, decay, beta, gate},
			tapsOf(part("conv1d.weight"), all, count), weight(part("A_log"), heads), weight(part("dt_bias"), heads),
			weight(part("norm.weight"), values))
		b.param(ir.FloatParam("eps", model.Eps))
		return out, heads * values
	}
	every := 4
	if _, ok := m.value("full_attention_interval"); ok {
		every = m.size("full_attention_interval", 4, "layers")
	}
	return x.ofLayers(m, model.Layers, func(layer int) bool { return (layer+1)%every == 0 })
}

var qwen35Names = &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{
	"s_proj": "linear_attn.in_proj_qkv", "z_proj": "linear_attn.in_proj_z",
	"b_proj": "linear_attn.in_proj_b", "a_proj": "linear_attn.in_proj_a", "state_out": "linear_attn.out_proj"}}

var qwen35Modelled = append(without(llamaModelled, "mlp_bias", "sliding_window", "use_sliding_window"),
	"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
	"linear_conv_kernel_dim", "full_attention_interval")

var qwen35Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	for _, field := range []string{"mlp_bias", "sliding_window", "use_sliding_window", "attn_output_gate",
		"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "output_gate_type",
		"number_of_conv_states"} {
		inert[field] = whatever
	}
	return inert
}()
