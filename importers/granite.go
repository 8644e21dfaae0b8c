package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importGranite builds the graph of a Granite: a Llama that multiplies rows of its embedding, scores and branches, and
// divides logits.
func importGranite(m *importer) *ir.Graph {
	d := granite(m, "GraniteForCausalLM")
	d.modelled, d.inert, d.biased.mlp = graniteModelled, graniteInert, m.truth("mlp_bias", false)
	return m.decoder(d)
}

// granite is a Granite, whose MLP has no biases. Defaults of absent fields are those of transformers' GraniteConfig, of
// which those with experts have the same.
func granite(m *importer, architecture string) *decoder {
	attention, embedding := m.truth("attention_bias", false), m.factor("embedding_multiplier")
	return &decoder{architecture: architecture, layers: 32, hidden: 4096, intermediate: 11008, heads: 32, vocab: 32000,
		positions: 2048, check: (*importer).refuseUnmodelled, biased: projections{heads: attention, o: attention},
		embedScale: func(*ir.Model) float64 { return embedding }, branchScale: m.factor("residual_multiplier"),
		attnScale: m.factor("attention_multiplier"), logitsScale: 1 / m.factor("logits_scaling")}
}

// importGraniteMoE and importGraniteMoEShared build the graphs of Granites with experts.
var (
	importGraniteMoE       = graniteMoE("GraniteMoeForCausalLM", false)
	importGraniteMoEShared = graniteMoE("GraniteMoeSharedForCausalLM", true)
)

// graniteMoE builds the graph of a Granite with experts, which are stored in one tensor for all, and perhaps one
// that every token has besides.
func graniteMoE(architecture string, shared bool) func(m *importer) *ir.Graph {
	modelled := expertsModelled(without(graniteModelled, "mlp_bias"), "num_local_experts")
	if shared {
		modelled = append(modelled, "shared_intermediate_size")
	}
	inert := expertsInert(llamaInert, modelled)
	inert["mlp_bias"] = isFalse.does(biases)
	return func(m *importer) *ir.Graph {
		e := m.readExperts([]string{"num_local_experts"}, 8, 2, "intermediate_size", 11008)
		e.ofChosen, e.router = true, "block_sparse_moe.router.layer"
		e.matrices = stackedExperts("block_sparse_moe.input_linear.weight",
			"block_sparse_moe.output_linear.weight")
		if _, ok := m.value("shared_intermediate_size"); shared && ok {
			m.sharedExperts(&e, "shared_intermediate_size", 1, m.count("shared_intermediate_size"))
		}
		e.parts = map[string]string{"down_proj": "shared_mlp.output_linear"}
		e.stacks = func(*ir.Model) []stack {
			return []stack{{"shared_mlp.input_linear", 2 * e.shared,
				map[string][]int{"gate_proj": {0, e.shared}, "up_proj": {e.shared, 2 * e.shared}}}}
		}
		d := granite(m, architecture)
		d.modelled, d.inert, d.experts = modelled, inert, &e
		return m.decoder(d)
	}
}

var graniteModelled = append(slices.Clone(llamaModelled), "embedding_multiplier", "attention_multiplier",
	"residual_multiplier", "logits_scaling")

var graniteInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	for _, field := range graniteModelled {
		delete(inert, field)
	}
	return inert
}()

// factor reads a positive number that is 1 where it is absent.
func (m *importer) factor(field string) float64 {
	if v, ok := m.value(field); ok {
		return m.between(field, v, interval{1e-6, 1e6})
	}
	return 1
}
