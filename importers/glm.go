package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// This file imports families of the form of Llama whose rotation pairs are neighbours.

// importGLM builds the graph of a GLM-4 of 2024: a Llama with biases of queries, keys and values, a fused gate and up,
// and half of each head rotated. Defaults of absent fields are those of transformers' GlmConfig.
func importGLM(m *importer) *ir.Graph { return m.decoder(glm(m, "GlmForCausalLM")) }

func glm(m *importer, architecture string) *decoder {
	return &decoder{architecture: architecture, modelled: glmModelled, inert: glmInert,
		layers: 40, hidden: 4096, intermediate: 13696, heads: 32, kvHeads: 2, headDim: 128, vocab: 151552,
		positions: 131072, eps: 1.5625e-7, check: (*importer).refuseOfGLM,
		biased: projections{heads: m.truth("attention_bias", true)}, stacks: stackedGateUp,
		turned: 0.5, interleaved: true}
}

// stackedGateUp are gate and up in one matrix.
func stackedGateUp(m *ir.Model) []stack {
	n := m.Intermediate
	return []stack{{"mlp.gate_up_proj", 2 * n, map[string][]int{"gate_proj": {0, n}, "up_proj": {n, 2 * n}}}}
}

var glmModelled = slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return field == "mlp_bias"
})

// glmInert are the inert fields of a GLM, whose MLP has no biases.
var glmInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["mlp_bias"] = isFalse.does("the projections of the MLP have biases")
	return inert
}()

// importGLM4 builds the graph of a GLM-4 of 2025: one of 2024 with a norm at the end of each branch too. Defaults of
// absent fields are those of transformers' Glm4Config.
func importGLM4(m *importer) *ir.Graph {
	d := glm(m, "Glm4ForCausalLM")
	d.postNorms, d.names = true, &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{
		"post_attn_norm": "post_self_attn_layernorm", "post_mlp_norm": "post_mlp_layernorm"}}
	return m.decoder(d)
}

// refuseOfGLM refuses what only other families have.
func (m *importer) refuseOfGLM() {
	m.refuseWindows()
	m.refuseGate()
}

// importErnie45 builds the graph of an Ernie 4.5 that is dense. One switch is for all biases. Defaults of absent fields
// are those of transformers' Ernie4_5Config.
func importErnie45(m *importer) *ir.Graph {
	biased := m.truth("use_bias", false)
	return m.decoder(&decoder{architecture: "Ernie4_5ForCausalLM", modelled: ernie45Modelled, inert: ernie45Inert,
		layers: 18, hidden: 1024, intermediate: 3072, heads: 16, kvHeads: 2, headDim: 128, vocab: 103424,
		positions: 131072, eps: 1e-5, tied: true, theta: 5e5, check: (*importer).refuseUnmodelled,
		biased: projections{heads: biased, o: biased, mlp: biased}, interleaved: true})
}

var ernie45Modelled = append(slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return field == "attention_bias" || field == "mlp_bias"
}), "use_bias")

// ernie45Inert are the inert fields of an Ernie 4.5, which has neither of a Llama's switches for biases.
var ernie45Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["attention_bias"] = isFalse.does("the projections have biases")
	inert["mlp_bias"] = isFalse.does("the projections have biases")
	inert["auto_map"] = isCodeOf("ernie4_5", "Ernie4_5")
	inert["compression_ratio"] = isNumber(1).does("positions are divided by it")
	inert["use_rmsnorm"] = isTrue
	return inert
}()

// importHelium builds the graph of a Helium. Its o_proj is square and has no bias. Defaults of absent fields are those
// of transformers' HeliumConfig.
func importHelium(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "HeliumForCausalLM", modelled: llamaModelled, inert: llamaInert,
		layers: 24, hidden: 2560, intermediate: 7040, heads: 20, kvHeads: 20, headDim: 128, vocab: 48000,
		positions: 4096, eps: 1e-8, theta: 1e5, check: (*importer).refuseUnmodelled,
		biased:      projections{heads: m.truth("attention_bias", false), mlp: m.truth("mlp_bias", false)},
		interleaved: true})
}
