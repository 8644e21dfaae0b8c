package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// This file imports families of Qwen that have a gated delta rule in place of attention in most layers. The others have
// attention whose output is multiplied by a sigmoid of a gate, and norms multiply by 1 + w.

// importQwen35Text builds the graph of the language model of a Qwen3.5. Defaults of absent fields are those of
// transformers' Qwen3_5TextConfig.
func importQwen35Text(m *importer) *ir.Graph {
	d, _ := m.qwen35("Qwen3_5ForCausalLM", qwen35Modelled, qwen35Inert)
	d.layers, d.hidden, d.intermediate, d.kvHeads = 32, 4096, 12288, 4
	return m.decoder(d)
}

// importQwen35MoEText builds the graph of the language model of a Qwen3.5 with experts: in all layers, with one that
// every token has besides. Defaults of absent fields are those of transformers' Qwen3_5MoeTextConfig.
func importQwen35MoEText(m *importer) *ir.Graph {
	d, _ := m.qwen35("Qwen3_5MoeForCausalLM", qwen35MoEModelled, qwen35MoEInert)
	e := m.expertsAndShared(256, 8)
	e.renormalised = true
	e.stacked = stackedExperts("mlp.experts.gate_up_proj", "mlp.experts.down_proj")
	d.layers, d.hidden, d.kvHeads, d.experts = 40, 2048, 2, e
	d.intermediate, d.fields = 512, map[string]string{"intermediate_size": "moe_intermediate_size"}
	return m.decoder(d)
}

// importQwen3Next builds the graph of a Qwen3-Next, in which some layers may have an MLP instead of experts. Defaults
// of absent fields are those of transformers' Qwen3NextConfig.
func importQwen3Next(m *importer) *ir.Graph {
	d, state := m.qwen35("Qwen3NextForCausalLM", qwen3NextModelled, qwen3NextInert)
	e := m.expertsAndShared(512, 10)
	e.dense, e.renormalised = m.denseLayers(), m.truth("norm_topk_prob", true)
	d.layers, d.hidden, d.intermediate, d.kvHeads, d.vocab, d.experts = 48, 2048, 5632, 2, 151936, e
	d.ropeOfParts = false
	d.stacks = func(model *ir.Model) []stack { return append(gatedHeads(model), rowsByKeyHeads(&state)...) }
	return m.decoder(d)
}

// qwen35 is what these families have in common, and the sizes of their states.
func (m *importer) qwen35(architecture string, modelled []string, inert map[string]known) (*decoder, ir.Mixer) {
	attention, state := m.truth("attention_bias", false), m.stateSizes()
	m.leftOut = append(m.leftOut, "mtp.") // layers that draft
	return &decoder{architecture: architecture, modelled: modelled, inert: inert, heads: 16, headDim: 256,
		vocab: 248320, positions: 32768, unitOffset: true, normedHeads: true, gatedHeads: true, turned: 0.25,
		ropeOfParts: true, check: (*importer).refuseGate, stacks: gatedHeads, names: qwen35Names,
		mixers: func(m *importer, model *ir.Model) []*mixer { return m.deltaRules(model, state) },
		biased: projections{heads: attention, o: attention}}, state
}

// expertsAndShared are experts of which a token has some, and one that every token has, times a sigmoid.
func (m *importer) expertsAndShared(count, perToken int) *mixtureOfExperts {
	e := m.readExperts([]string{"num_experts"}, count, perToken, "moe_intermediate_size", 512)
	m.readShared(&e, 512)
	return &e
}

// gatedHeads are the queries and their gates: of each head, the rows of one are before those of the other.
func gatedHeads(model *ir.Model) []stack {
	n, d := model.Heads*model.HeadDim, model.HeadDim
	return []stack{{"self_attn.q_proj", 2 * n, map[string][]int{"q_proj": {0, d, 2 * d}, "g_proj": {d, 2 * d, 2 * d}}}}
}

// rowsByKeyHeads are the projections of a delta rule in two tensors: of each head of keys, rows of its query, its key,
// and the values, gates, strengths and decays of the heads that share it.
func rowsByKeyHeads(s *ir.Mixer) []stack {
	own := s.StateHeads / s.StateKeyHeads
	k, v := s.StateKeys, own*s.StateValues
	of, both := 2*k+2*v, 2*own
	const rows, scalars = "linear_attn.in_proj_qkvz", "linear_attn.in_proj_ba"
	return []stack{
		{rows, s.StateKeyHeads * of, map[string][]int{"s_proj": {0, k, of}, "z_proj": {2*k + v, of, of}}},
		{rows, s.StateKeyHeads * of, map[string][]int{"s_proj": {k, 2 * k, of}}},
		{rows, s.StateKeyHeads * of, map[string][]int{"s_proj": {2 * k, 2*k + v, of}}},
		{scalars, s.StateKeyHeads * both, map[string][]int{"b_proj": {0, own, both}, "a_proj": {own, both, both}}},
	}
}

// deltaRules are those of all layers.
func (m *importer) deltaRules(model *ir.Model, s ir.Mixer) []*mixer {
	keyHeads, heads, keys, values := s.StateKeyHeads, s.StateHeads, s.StateKeys, s.StateValues
	h, all, count := model.Hidden, 2*keyHeads*keys+heads*values, s.Taps
	part := func(name string) string { return m.names.inLayer("linear_attn." + name) }
	x := &mixer{kind: "linear_attention", last: "state_out", facts: s}
	x.nodes = func(b *nodes, in string, linear linearNode) (string, int) {
		mixed := linear("s_proj", in, all, h, false)
		gate := linear("z_proj", in, heads*values, h, false)
		beta, decay := linear("b_proj", in, heads, h, false), linear("a_proj", in, heads, h, false)
		out := b.add("delta_rule", "delta_rule", []int{heads * values}, []string{mixed, decay, beta, gate},
			tapsOf(part("conv1d.weight"), all, count), exactWeight(part("A_log"), heads),
			exactWeight(part("dt_bias"), heads), weight(part("norm.weight"), values))
		b.param(ir.FloatParam("eps", model.Eps))
		return out, heads * values
	}
	every := 4
	if _, ok := m.value("full_attention_interval"); ok {
		every = m.size("full_attention_interval", 4, "layers")
	}
	return x.ofLayers(m, model.Layers, func(layer int) bool { return (layer+1)%every == 0 })
}

// stateSizes reads the sizes of the states of a layer, and how many positions their convolution sees.
func (m *importer) stateSizes() ir.Mixer {
	const most = "head_dim"
	s := ir.Mixer{Taps: m.taps("linear_conv_kernel_dim", 4), StateHeads: m.size("linear_num_value_heads", 32, "heads"),
		StateKeyHeads: m.size("linear_num_key_heads", 16, "heads"), StateKeys: m.size("linear_key_head_dim", 128, most),
		StateValues: m.size("linear_value_head_dim", 128, most)}
	if s.StateHeads%s.StateKeyHeads != 0 {
		if m.diags.Err() == nil {
			m.fail(codeField, "linear_num_value_heads", "is %d; want a multiple of linear_num_key_heads, %d",
				s.StateHeads, s.StateKeyHeads)
		}
		s.StateHeads = s.StateKeyHeads
	}
	return s
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
		"mamba_ssm_dtype", "mlp_only_layers", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings",
		"output_gate_type", "number_of_conv_states"} {
		inert[field] = whatever
	}
	return inert
}()

var (
	qwen35MoEModelled = expertsModelled(without(qwen35Modelled, "intermediate_size"), "num_experts",
		"moe_intermediate_size", "shared_expert_intermediate_size")
	qwen35MoEInert = func() map[string]known {
		inert := expertsInert(qwen35Inert, qwen35MoEModelled)
		for _, field := range []string{"intermediate_size", "decoder_sparse_step", "norm_topk_prob"} {
			inert[field] = whatever
		}
		return inert
	}()
)

var (
	qwen3NextModelled = append(slices.Clone(qwen35MoEModelled), "intermediate_size", "norm_topk_prob",
		"decoder_sparse_step", "mlp_only_layers")
	qwen3NextInert = expertsInert(qwen35MoEInert, qwen3NextModelled)
)
