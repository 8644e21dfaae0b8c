package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importGranite builds the graph of a Granite: a Llama that multiplies rows of its embedding, scores and branches, and
// divides logits. Defaults of absent fields are those of transformers' GraniteConfig.
func importGranite(m *importer) *ir.Graph {
	attention, embedding := m.truth("attention_bias", false), m.factor("embedding_multiplier")
	return m.decoder(&decoder{architecture: "GraniteForCausalLM", modelled: graniteModelled, inert: graniteInert,
		layers: 32, hidden: 4096, intermediate: 11008, heads: 32, vocab: 32000, positions: 2048,
		check:      (*importer).refuseUnmodelled,
		biased:     projections{heads: attention, o: attention, mlp: m.truth("mlp_bias", false)},
		embedScale: func(*ir.Model) float64 { return embedding }, branchScale: m.factor("residual_multiplier"),
		attnScale: m.factor("attention_multiplier"), logitsScale: 1 / m.factor("logits_scaling")})
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
