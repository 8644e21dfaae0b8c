package importers

import (
	"maps"

	"amkc/ir"
)

// This file imports families whose layers are gated short convolutions, but for some with attention.

// importLFM2 builds the graph of an LFM2 or LFM2.5. Defaults of absent fields are those of transformers' Lfm2Config.
func importLFM2(m *importer) *ir.Graph {
	d := m.lfm2("Lfm2ForCausalLM", lfm2Modelled, lfm2Inert)
	d.hidden, d.intermediate = 2560, 12288
	d.width = (*importer).adjustedWidth
	if _, ok := m.value("block_ff_dim"); ok {
		d.fields["intermediate_size"] = "block_ff_dim"
	}
	return m.decoder(d)
}

// lfm2 is what both families have.
func (m *importer) lfm2(architecture string, modelled []string, inert map[string]known) *decoder {
	fields := map[string]string{"rms_norm_eps": "norm_eps"}
	if _, ok := m.value("tie_embedding"); ok {
		fields["tie_word_embeddings"] = "tie_embedding"
	}
	biased := m.truth("conv_bias", false)
	return &decoder{architecture: architecture, modelled: modelled, inert: inert, fields: fields,
		layers: 32, heads: 32, kvHeads: 8, vocab: 65536, positions: 128000, tied: true, eps: 1e-5, theta: 1e6,
		normedHeads: true, names: lfm2Names, check: (*importer).refusePartOfType,
		mixers: func(m *importer, model *ir.Model) []*mixer { return m.gatedConvolutions(model, biased) },
		stacks: func(model *ir.Model) []stack {
			h := model.Hidden
			return []stack{{"conv.in_proj", 3 * h, map[string][]int{"b_proj": {0, h}, "c_proj": {h, 2 * h},
				"x_proj": {2 * h, 3 * h}}}}
		}}
}

// gatedConvolutions are those of all layers: B, C and x are projected, B·x is convolved, and C multiplies that.
func (m *importer) gatedConvolutions(model *ir.Model, biased bool) []*mixer {
	h, count := model.Hidden, m.taps("conv_L_cache", 3)
	x := &mixer{kind: "conv", last: "conv_out", biased: biased, facts: ir.Mixer{Channels: h, Taps: count}}
	x.nodes = func(b *nodes, in string, linear linearNode) (string, int) {
		gate, of := linear("b_proj", in, h, h, biased), linear("c_proj", in, h, h, biased)
		weights := []ir.GraphWeight{tapsOf(m.names.inLayer("conv.conv.weight"), h, count)}
		if biased {
			weights = append(weights, weight(m.names.inLayer("conv.conv.bias"), h))
		}
		out := b.add("short_conv", "short_conv", []int{h}, []string{linear("x_proj", in, h, h, biased), gate, of},
			weights...)
		b.param(ir.IntParam("taps", ir.Int(count)))
		return out, h
	}
	attention := map[int]bool{}
	v, listed := m.value("full_attn_idxs")
	list, isList := v.([]any)
	for _, v := range list {
		n, isInt := asInt(v)
		attention[n], isList = true, isList && isInt
	}
	if listed && !isList {
		m.fail(codeField, "full_attn_idxs", "is %s; want a list of numbers of layers", spell(v))
	}
	return x.ofLayers(m, model.Layers, func(layer int) bool { return !listed || attention[layer] })
}

// refusePartOfType demands that heads are rotated whole where the type of the rotation is the one that reads a part of
// them outside of its object.
func (m *importer) refusePartOfType() {
	const partial = "proportional"
	_, params := m.ropeObject()
	if params != nil && (get(params, "rope_type") == partial || get(params, "type") == partial) {
		m.refusePartial()
	}
}

// adjustedWidth is that of an MLP of which the config says how wide it would be without a gate: two thirds, times a
// factor, rounded up.
func (m *importer) adjustedWidth(n int) int {
	factor, unit := 1.0, m.size("block_multiple_of", 256, "intermediate")
	v, stated := m.value("block_ffn_dim_multiplier")
	if stated {
		factor = m.between("block_ffn_dim_multiplier", v, interval{1e-6, 1e6})
	}
	if !m.truth("block_auto_adjust_ff_dim", true) || m.diags.Err() != nil {
		return n
	}
	n = int(2 * float64(n) / 3)
	if null, there := m.doc.Get("block_ffn_dim_multiplier"); there && null == nil {
		return n
	}
	n = (int(factor*float64(n)) + unit - 1) / unit * unit
	if most := ir.ModelBound("intermediate").Hi; n < 1 || n > most {
		m.fail(codeField, "block_ffn_dim_multiplier", "is %g, which makes an MLP %d wide; want 1 to %d", factor, n,
			most)
		return 1
	}
	return n
}

var lfm2Names = &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{
	"final_norm": "embedding_norm", "input_norm": "operator_norm", "post_norm": "ffn_norm",
	"q_norm": "self_attn.q_layernorm", "k_norm": "self_attn.k_layernorm", "o_proj": "self_attn.out_proj",
	"conv_out": "conv.out_proj", "gate_proj": "feed_forward.w1", "up_proj": "feed_forward.w3",
	"down_proj": "feed_forward.w2"}}

var lfm2Modelled = append(without(llamaModelled, "rms_norm_eps", "hidden_act", "attention_bias", "mlp_bias",
	"sliding_window", "use_sliding_window"), "norm_eps", "tie_embedding", "block_ff_dim",
	"conv_L_cache", "conv_bias", "full_attn_idxs", "block_auto_adjust_ff_dim", "block_multiple_of",
	"block_ffn_dim_multiplier")

// lfm2Inert are the inert fields of an LFM2. Published configs have some of the code that trained it, which the class
// does not read.
var lfm2Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	for _, field := range []string{"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
		"block_use_swiglu", "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads",
		"use_pos_enc", "theta", "hidden_act", "attention_bias", "mlp_bias", "rms_norm_eps", "sliding_window",
		"use_sliding_window", "number_of_conv_states"} {
		inert[field] = whatever
	}
	return inert
}()

// importLFM2MoE builds the graph of an LFM2 with experts but for the first layers: scores are sigmoids, to which a bias
// is added for the choice alone. Defaults of absent fields are those of transformers' Lfm2MoeConfig.
func importLFM2MoE(m *importer) *ir.Graph {
	d := m.lfm2("Lfm2MoeForCausalLM", lfm2MoEModelled, lfm2MoEInert)
	e := m.readExperts([]string{"num_experts"}, 32, 4, "moe_intermediate_size", 1792)
	e.sigmoid, e.extra, e.renormalised = true, 1e-6, m.truth("norm_topk_prob", true)
	e.router, e.scale = "feed_forward.gate", m.factor("routed_scaling_factor")
	if m.truth("use_expert_bias", true) {
		e.choosing = "feed_forward.expert_bias"
	}
	e.matrices = separateExperts("feed_forward.experts", "w1", "w3", "w2")
	dense := 2
	if _, ok := m.value("num_dense_layers"); ok {
		dense = m.count("num_dense_layers")
	}
	e.dense = func(layer int) bool { return layer < dense }
	d.hidden, d.intermediate, d.experts = 2048, 7168, &e
	return m.decoder(d)
}

var lfm2MoEModelled = expertsModelled(without(lfm2Modelled, "block_ff_dim", "full_attn_idxs",
	"block_auto_adjust_ff_dim", "block_multiple_of", "block_ffn_dim_multiplier"), "num_experts",
	"moe_intermediate_size", "norm_topk_prob", "routed_scaling_factor", "use_expert_bias", "num_dense_layers")

var lfm2MoEInert = expertsInert(lfm2Inert, lfm2MoEModelled)
