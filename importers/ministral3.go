package importers

import (
	"encoding/json"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// importMinistral3 builds the graph of a Ministral 3: a Mistral that multiplies queries by a factor that grows with
// their position, from the positions on that its rotation was trained for. Only positions before are modelled, where
// the factor is 1.
// Defaults of absent fields are those of transformers' Ministral3Config.
func importMinistral3(m *importer) *ir.Graph {
	return m.decoder(&decoder{architecture: "Ministral3ForCausalLM", modelled: llamaModelled, inert: llamaInert,
		layers: 34, hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, headDim: 128, vocab: 131072,
		positions: 262144, eps: 1e-5, check: (*importer).refuseOfMistral, ropes: ministral3Ropes,
		windows: func(m *importer, layers int) []int { return m.windowOfAll(0, layers) }})
}

// ministral3Ropes reads one rotary embedding for all layers, and limits positions to those whose queries are multiplied
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
