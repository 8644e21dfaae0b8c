package importers

import (
	"maps"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// importOLMo2 builds the graph of an OLMo 2: no norm before a branch, one at its end, and norms of all queries and of
// all keys. Defaults of absent fields are those of transformers' Olmo2Config.
func importOLMo2(m *importer) *ir.Graph {
	d := olmo2(m, "Olmo2ForCausalLM")
	d.modelled, d.inert, d.check = llamaModelled, olmo2Inert, (*importer).refuseOfOLMo2
	return m.decoder(d)
}

func olmo2(m *importer, architecture string) *decoder {
	attention := m.truth("attention_bias", false)
	return &decoder{architecture: architecture,
		layers: 32, hidden: 4096, intermediate: 11008, heads: 32, vocab: 50304, positions: 2048, eps: 1e-5,
		biased: projections{heads: attention, o: attention}, normedAll: true,
		bareBranches: true, postNorms: true, names: bareNames}
}

// olmo2Inert are the inert fields of an OLMo 2, whose MLP has no biases.
var olmo2Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["mlp_bias"] = isFalse.does("the projections of the MLP have biases")
	return inert
}()

// refuseOfOLMo2 refuses what the class of an OLMo 2 reads and a decoder does not model, and what only others have.
func (m *importer) refuseOfOLMo2() {
	m.refuseTrue("mlp_bias")
	m.refuseUnmodelled()
}

// importOLMo3 builds the graph of an OLMo 3: an OLMo 2 with windows in all layers but every fourth, and a rotation of
// its own for either kind. Defaults of absent fields are those of transformers' Olmo3Config.
func importOLMo3(m *importer) *ir.Graph {
	d := olmo2(m, "Olmo3ForCausalLM")
	d.modelled, d.inert, d.check = olmo3Modelled, olmo2Inert, (*importer).refuseOfOLMo3
	d.windows = func(m *importer, layers int) []int { return m.windowsOfPattern(layers, 4) }
	d.ropes = olmo3Ropes
	return m.decoder(d)
}

var olmo3Modelled = slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return field == "mlp_bias"
})

// olmo3Ropes reads the rotary embedding of layers without a window and of those with one. rope_parameters has an object
// for each; before, rope_scaling was of the former alone.
func olmo3Ropes(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
	const theta = 5e5
	where, full := m.ropeObject()
	localWhere, local := "rope_theta", (*checkpoint.Object)(nil)
	if where == "rope_parameters" && full != nil {
		where, full, localWhere, local = m.ropeParts(full)
	} else {
		// The class takes the base for one kind of layers alone.
		if v, ok := m.value("rope_theta"); ok && !isNumber(theta).accept(v) {
			m.fail(codeRope, "rope_theta", "is %s; accepted: 500000, or rope_parameters with a base for each kind of "+
				"layers", spell(v))
		}
	}
	m.refuseUnread(where, full)
	m.refuseUnread(localWhere, local)
	rope := m.ropeOf(where, full, m.ropeTheta("rope_theta", theta, where, full), model, trained)
	windowed := m.ropeOf(localWhere, local, m.ropeTheta("rope_theta", theta, localWhere, local), model, trained)
	return rope, &windowed
}

// refuseOfOLMo3 refuses what the class of an OLMo 3 reads and a decoder does not model, and what only others have.
func (m *importer) refuseOfOLMo3() {
	m.refuseTrue("use_sliding_window")
	if v, there := m.doc.Get("sliding_window"); there && v == nil {
		m.fail(codeField, "sliding_window", "is null; want an integer from 1 on; layer_types may list layers "+
			"without a window")
	}
	m.refuseOfDecoders()
}
