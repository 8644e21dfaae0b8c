package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importQwen3 builds the graph of a Qwen3: a Llama with an RMSNorm on each head of the queries and of the keys, before
// its rotation. Defaults of absent fields are those of transformers' Qwen3Config.
func importQwen3(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "Qwen3ForCausalLM",
		modelled: qwen3Modelled, inert: qwen3Inert,
		layers: 32, hidden: 4096, intermediate: 22016, heads: 32, kvHeads: 32, headDim: 128, vocab: 151936,
		positions: 32768,
		check:     (*importer).refuseOfDecoders, windows: qwen2Windows, normedHeads: true,
		biased: projections{heads: attention, o: attention}})
}

var qwen3Modelled = append(slices.Clone(qwen2Modelled), "attention_bias")

// qwen3Inert are the inert fields of a Qwen2, whose class does not read mlp_bias either.
var qwen3Inert = func() map[string]known {
	inert := maps.Clone(qwen2Inert)
	delete(inert, "attention_bias")
	return inert
}()
