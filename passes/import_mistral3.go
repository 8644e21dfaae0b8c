package passes

import (
	"encoding/json"

	"amkc/ir"
	"amkc/passes/checkpoint"
)

// importMistral3 builds the graph of the text part of a Mistral 3, which sees images too: a Mistral (Mistral Small 3.1
// and 3.2) or a Ministral 3.
func importMistral3(m *importer) *ir.Graph {
	part := &textPart{architecture: "Mistral3ForConditionalGeneration", inert: mistral3Inert,
		types: []string{"mistral", "ministral3"}}
	_, outside := m.value("tie_word_embeddings")
	tied, ok := m.textPart(part)
	if !ok {
		return nil
	}
	d := mistral(part.architecture)
	if m.text("model_type", "") == "ministral3" {
		d = ministral3(part.architecture)
	}
	d.names = m.namesOfText(part)
	d.fields = map[string]string{"tie_word_embeddings": ""} // textPart has read it
	switch {
	case tied != nil && (outside || *tied):
		d.tied = *tied
	case m.src.Weights != nil || m.src.Tensors != nil:
		// The class ties them where the files lack the head, whatever text_config says.
		d.tied = !m.hasTensor(d.names.logits())
	}
	return m.decoder(d)
}

var mistral3Inert = imageInert("image_token_index", "image_token_id", "multimodal_projector_bias",
	"projector_hidden_act", "spatial_merge_size", "vision_feature_layer")

// importMinistral3 builds the graph of a Ministral 3: a Mistral that multiplies queries by a factor that grows with
// their position, from the positions on that its rotation was trained for. Only positions before are modelled, where
// the factor is 1.
func importMinistral3(m *importer) *ir.Graph { return m.decoder(ministral3("Ministral3ForCausalLM")) }

// ministral3 has as defaults those of transformers' Ministral3Config.
func ministral3(architecture string) *decoder {
	return &decoder{architecture: architecture, modelled: llamaModelled, inert: llamaInert,
		layers: 34, hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, headDim: 128, vocab: 131072,
		positions: 262144, eps: 1e-5, check: (*importer).refuseOfMistral, ropes: ministral3Ropes,
		windows: func(m *importer, layers int) []int { return m.windowOfAll(0, layers) }}
}

// ministral3Ropes reads one rotary embedding for all layers, and holds positions to those whose queries are multiplied
// by 1.
func ministral3Ropes(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
	const beta, original = "llama_4_scaling_beta", "original_max_position_embeddings"
	where, params := m.ropeObject()
	if params == nil {
		where, params = "rope_parameters", checkpoint.NewObject(map[string]any{"rope_type": "yarn",
			"rope_theta": json.Number("1e6"), "factor": json.Number("16"), original: json.Number("16384"),
			"mscale": json.Number("1"), "mscale_all_dim": json.Number("1"), beta: json.Number("0.1")})
	}
	r := m.ropeReader(where, params, m.ropeTheta("rope_theta", 10000, where, params), model, trained)
	r.extra = []string{beta, "max_position_embeddings"} // the class reads the latter nowhere
	for _, key := range []string{beta, original} {
		if !r.has(key) {
			m.fail(codeRope, r.at(key), "is missing; a Ministral 3 needs it")
			return ir.Rope{}, nil
		}
	}
	rope := r.read()
	if n := int(r.originally()); r.number(beta, 0) != 0 && model.MaxSeq > n {
		m.fail(codeNotModelled, r.at(beta), "multiplies queries from position %d on, which is not modelled; accepted: "+
			"0, or --max-seq up to %d", n, n)
	}
	return rope, nil
}
