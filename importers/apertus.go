package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

const xielu = "xielu"

// importApertus builds the graph of an Apertus: a Llama with norms of heads whose MLP has no gate. Its activation xIELU
// has numbers of its own in each layer, of which the checkpoint also has those that are not learned. Defaults of absent
// fields are those of transformers' ApertusConfig.
func importApertus(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	names := &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{
		"input_norm": "attention_layernorm", "post_norm": "feedforward_layernorm"}}
	d := &decoder{architecture: "ApertusForCausalLM", modelled: apertusModelled, inert: apertusInert,
		layers: 32, hidden: 4096, intermediate: 14336, heads: 32, vocab: 131072, positions: 65536, eps: 1e-5,
		theta: 12e6, scaling: llama3Scaling("12e6", "8"), normedHeads: true, act: m.activation("hidden_act", xielu),
		names: names, biased: projections{heads: attention, o: attention}, check: (*importer).refuseOfArcee}
	if d.act != xielu {
		return m.decoder(d)
	}
	var parts []ir.GraphWeight
	for _, learned := range []string{"alpha_p", "alpha_n"} {
		parts = append(parts, weight(names.inLayer("mlp.act_fn."+learned), 1))
	}
	for _, fixed := range []string{"beta", "eps"} {
		w := weight(names.inLayer("mlp.act_fn."+fixed), 1)
		w.Stored = []int{} // a scalar
		parts = append(parts, w)
	}
	d.actWeights = []ir.GraphWeight{{Shape: []int{len(parts)}, Parts: parts}}
	return m.decoder(d)
}

// apertusInert are the inert fields of an Apertus. Published configs say what its class always has and never has.
var apertusInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["mlp_bias"] = isFalse.does(biases)
	inert["qk_norm"] = isTrue.does("queries and keys have no norms")
	inert["post_norm"] = isFalse.does("norms come after branches")
	return inert
}()

var apertusModelled = slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return field == "mlp_bias"
})
