package importers

import (
	"maps"

	"amkc/ir"
)

// importOLMo builds the graph of the first OLMo: a Llama whose norms take the mean off and have no weights, and whose
// queries, keys and values may have bounds. Defaults of absent fields are those of transformers' OlmoConfig; the eps of
// its norms is not a field.
func importOLMo(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	d := &decoder{architecture: "OlmoForCausalLM", modelled: olmoModelled, inert: olmoInert,
		fields: map[string]string{"rms_norm_eps": ""},
		layers: 32, hidden: 4096, intermediate: 11008, heads: 32, vocab: 50304, positions: 2048, eps: 1e-5,
		layerNorm: &layerNorm{bare: true}, biased: projections{heads: attention, o: attention},
		check: (*importer).refuseOfDecoders}
	if v, ok := m.value("clip_qkv"); ok {
		d.clip = m.single("clip_qkv", v)
	}
	return m.decoder(d)
}

var olmoModelled = layerNormModelled(nil, "attention_bias", "clip_qkv")

var olmoInert = func() map[string]known {
	inert := maps.Clone(layerNormInert)
	delete(inert, "attention_bias")
	delete(inert, "clip_qkv")
	return inert
}()
