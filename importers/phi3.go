package importers

import (
	"maps"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// importPhi3 builds the graph of a Phi-3, 3.5 or 4: a Llama whose projections are fused in the checkpoint. Some rotate
// a part of each head, some by frequencies for short or for long texts, and some attend to a window. Defaults of absent
// fields are those of transformers' Phi3Config.
func importPhi3(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "Phi3ForCausalLM", modelled: phi3Modelled, inert: phi3Inert,
		layers: 32, hidden: 3072, intermediate: 8192, heads: 32, vocab: 32064, positions: 4096, eps: 1e-5,
		check: (*importer).refuseOfPhi3, windows: phi3Windows, ropes: phi3Ropes, stacks: phi3Stacks})
}

var phi3Modelled = slices.DeleteFunc(slices.Clone(llamaModelled), func(field string) bool {
	return field == "use_sliding_window" || field == "mlp_bias" || field == "attention_bias"
})

// phi3Inert are the inert fields of a Phi-3. Its class has dropouts of its own, and no biases. The code published with
// checkpoints, which reads some fields more, computes what transformers' class does with them as they are here.
var phi3Inert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	inert["resid_pdrop"], inert["embd_pdrop"] = whatever, whatever
	inert["attention_bias"] = isFalse.does("the projections have biases")
	inert["mlp_bias"] = isFalse.does("the projections have biases")
	inert["lm_head_bias"] = isFalse.does("the logits have biases")
	inert["use_sliding_window"] = isFalse.does("some layers attend to fewer positions")
	inert["full_attn_mod"] = isNumber(1).does("some layers attend to fewer positions")
	inert["interpolate_factor"] = isNumber(1).does("positions are interpolated")
	inert["auto_map"] = isCodeOf("phi3", "Phi3")
	return inert
}()

// isCodeOf is an auto_map that names no classes but those of a family that transformers has too, and loads by default.
func isCodeOf(modelType, class string) known {
	classes := map[string]string{"AutoConfig": "configuration_" + modelType + "." + class + "Config",
		"AutoModel":            "modeling_" + modelType + "." + class + "Model",
		"AutoModelForCausalLM": "modeling_" + modelType + "." + class + "ForCausalLM"}
	return known{want: "it names the classes of the family", accept: func(v any) bool {
		object, ok := v.(*checkpoint.Object)
		if !ok {
			return isEmpty.accept(v)
		}
		return !slices.ContainsFunc(object.Keys(), func(auto string) bool {
			class, known := classes[auto]
			return auto != "AutoTokenizer" && (!known || get(object, auto) != class)
		})
	}}
}

// phi3Stacks are queries, keys and values in one matrix, and gate and up in another.
func phi3Stacks(m *ir.Model) []stack {
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	return append(stackedGateUp(m), stack{"self_attn.qkv_proj", q + 2*kv, map[string][]int{"q_proj": {0, q},
		"k_proj": {q, q + kv}, "v_proj": {q + kv, q + 2*kv}}})
}

func phi3Windows(m *importer, layers int) []int { return m.windowOfAll(0, layers) }

// phi3RopeTypes are what configs of a Phi-3 call its types: longrope has had other names.
var phi3RopeTypes = map[string]string{defaultRope: defaultRope, "longrope": "longrope", "su": "longrope",
	"yarn": "longrope"}

// phi3Ropes reads one rotary embedding for all layers.
func phi3Ropes(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
	where, params := m.ropeObject()
	r := m.ropeReader(where, params, m.ropeTheta("rope_theta", 10000, where, params), model, trained)
	r.partial, r.types, r.original = true, phi3RopeTypes, 4096
	r.turned = r.part(partialFactor, model.HeadDim, 1)
	return r.read(), nil
}

// refuseOfPhi3 refuses what the class of a Phi-3 reads and a decoder does not model.
func (m *importer) refuseOfPhi3() {
	m.refuseGate()
}
