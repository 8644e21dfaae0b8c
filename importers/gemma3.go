package importers

import (
	"maps"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// importGemma3Text builds the graph of a Gemma 3 that reads text alone: a Gemma 2 without a cap of scores, with a norm
// of each head of queries and keys, five layers with a window to one without, and a rotary embedding for either.
// Defaults of absent fields are those of transformers' Gemma3TextConfig.
func importGemma3Text(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "Gemma3ForCausalLM", modelled: gemma3Modelled, inert: gemma3Inert,
		layers: 26, hidden: 2304, intermediate: 9216, heads: 8, kvHeads: 4, headDim: 256, vocab: 262208,
		positions: 131072, tied: true,
		check: (*importer).refuseOfGemma2, windows: gemma3Windows, gate: m.gateOf("hidden_activation", tanhGELU),
		biased:     projections{heads: attention, o: attention},
		unitOffset: true, embedScale: rootOfHidden, postNorms: true, normedHeads: true, ropes: gemma3Ropes,
		names:     postNormNames,
		attnScale: m.scoreScale("query_pre_attn_scalar", 256), logitsCap: m.softCapOf("final_logit_softcapping", 0)})
}

var gemma3Modelled = append(slices.DeleteFunc(slices.Clone(gemma2Modelled), func(field string) bool {
	return field == "attn_logit_softcapping"
}), "sliding_window_pattern", "rope_local_base_freq")

// gemma3Inert are the inert fields of a Gemma 3. transformers reads its cap of scores and caps nothing, so that a value
// is refused: what it should do is not settled.
var gemma3Inert = func() map[string]known {
	inert := maps.Clone(gemma2Inert)
	inert["attn_logit_softcapping"] = llamaInert["attn_logit_softcapping"]
	return inert
}()

// gemma3Windows are those of all layers but every sixth, or every other one that the config says.
func gemma3Windows(m *importer, layers int) []int {
	return m.windowsOfPattern(layers, m.size("sliding_window_pattern", 6, "layers"))
}

// gemma3Ropes reads the rotary embedding of layers without a window and of those with one. rope_parameters has an
// object for each; before, rope_theta and rope_scaling were of the former and rope_local_base_freq of the latter.
func gemma3Ropes(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
	where, full := m.ropeObject()
	localWhere, local := "rope_local_base_freq", (*checkpoint.Object)(nil)
	if where == "rope_parameters" && full != nil {
		where, full, localWhere, local = m.ropeParts(full)
	}
	m.refuseUnread(where, full)
	m.refuseUnread(localWhere, local)
	rope := m.ropeOf(where, full, m.ropeTheta("rope_theta", 1e6, where, full), model, trained)
	windowed := m.ropeOf(localWhere, local, m.ropeTheta("rope_local_base_freq", 1e4, localWhere, local), model, trained)
	return rope, &windowed
}

// ropeParts returns the objects of layers without a window and of those with one, and where each stands.
func (m *importer) ropeParts(parts *checkpoint.Object) (string, *checkpoint.Object, string, *checkpoint.Object) {
	for _, key := range parts.Keys() {
		if key != fullAttention && key != slidingAttention {
			m.fail(codeRope, "rope_parameters."+key, "is of no kind of layers; accepted: %q and %q", fullAttention,
				slidingAttention)
		}
	}
	return "rope_parameters." + fullAttention, m.ropePart(parts, fullAttention),
		"rope_parameters." + slidingAttention, m.ropePart(parts, slidingAttention)
}

// refuseUnread refuses what transformers does not read in the object of a kind of layers: a switch of yarn that it
// looks for alongside the objects, and so takes for true in each of them, and the former name of the type, which it
// does not look for where rope_scaling is of one kind of layers.
func (m *importer) refuseUnread(where string, params *checkpoint.Object) {
	if params == nil {
		return
	}
	former, present := get(params, "type"), get(params, "rope_type")
	if where == "rope_scaling" && former != nil && former != defaultRope && present == nil {
		m.fail(codeRope, where+".type", "is %s, which transformers does not read of a kind of layers; want "+
			"rope_type", spell(former))
	}
	if v, there := params.Get("truncate"); there && v != true {
		m.fail(codeRope, where+".truncate", "is %s, which transformers does not read of a kind of layers; accepted: "+
			"true", spell(v))
	}
}

// ropePart returns the object of a kind of layers; nil if there is none.
func (m *importer) ropePart(parts *checkpoint.Object, kind string) *checkpoint.Object {
	v := get(parts, kind)
	object, ok := v.(*checkpoint.Object)
	if !ok && v != nil {
		m.fail(codeRope, "rope_parameters."+kind, "is %s; want an object or null", spell(v))
	}
	return object
}
