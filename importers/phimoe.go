package importers

import (
	"maps"

	"amkc/ir"
)

// importPhiMoE builds the graph of a Phi-3.5-MoE: LayerNorms, and two experts of each token, which SparseMixer weighs.
// Defaults of absent fields are those of transformers' PhimoeConfig.
func importPhiMoE(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	e := m.sizesOfExperts([]string{"num_local_experts"}, 16, "intermediate_size", 6400)
	e.perToken = 2 // whatever num_experts_per_tok says: the class does not use it
	e.jitter = m.above("router_jitter_noise", 0.01)
	e.asOfMixtral()
	return m.decoder(&decoder{architecture: "PhimoeForCausalLM", alias: "PhiMoEForCausalLM", modelled: phiMoEModelled,
		inert: phiMoEInert, layers: 32,
		hidden: 4096, intermediate: 6400, heads: 32, kvHeads: 8, vocab: 32064, positions: 4096 * 32,
		eps: 1e-5, theta: 1e6, layerNorm: &layerNorm{biased: true}, ropes: phiMoERopes, experts: &e,
		check: (*importer).refuseGate, biasedHead: m.truth("lm_head_bias", false),
		windows: func(m *importer, layers int) []int { return sameWindow(m.windowOf(0), layers) },
		biased:  projections{heads: attention, o: attention}})
}

// phiMoERopes reads one rotary embedding for all layers. transformers takes short_factor for texts of all lengths, and
// the scale of longer ones for those beyond original_max_position_embeddings, which no published model means: builds
// are for texts of up to as many.
func phiMoERopes(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
	const short, long = "short_mscale", "long_mscale"
	where, params := m.ropeObject()
	r := m.ropeReader(where, params, m.ropeTheta("rope_theta", 1e6, where, params), model, trained)
	r.extra, r.types = []string{short, long}, map[string]string{defaultRope: defaultRope, "longrope": "longrope"}
	rope := r.read()
	const trainedOn = "original_max_position_embeddings"
	if v, ok := m.value(trainedOn); ok && r.kind != "longrope" { // which nothing then depends on
		m.between(trainedOn, v, ropeBounds[trainedOn])
	}
	if r.kind != "longrope" || m.diags.Err() != nil {
		return rope, nil
	}
	for _, key := range []string{long, short} { // of which the class demands both
		rope.Scale = m.between(r.at(key), get(params, key), ropeBounds["attention_factor"])
	}
	if original := r.originally(); float64(model.MaxSeq) > original {
		m.fail(codeMaxSeq, where, "is of type longrope, and transformers does not rotate texts beyond "+
			"original_max_position_embeddings, %.0f, as the model was trained to; want --max-seq %.0f or less",
			original, original)
	}
	return rope, nil
}

var phiMoEModelled = append(without(llamaModelled, "mlp_bias", "layer_types", "use_sliding_window",
	"partial_rotary_factor"), "num_local_experts", "router_jitter_noise", "lm_head_bias")

var phiMoEInert = func() map[string]known {
	inert := expertsInert(llamaInert, phiMoEModelled)
	maps.Copy(inert, map[string]known{"auto_map": isCodeOf("phimoe", "PhiMoE"), "input_jitter_noise": whatever,
		"num_experts_per_tok": whatever,
		"mlp_bias":            isFalse.does(biases), "use_sliding_window": isFalse.does(windows),
		"layer_types": allText(fullAttention).does(windows)})
	return inert
}()
