package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// importHyperCLOVAX builds the graph of a HyperCLOVA X SEED: a Granite that multiplies its logits, and may have a norm
// at the end of each branch too. Defaults of absent fields are those of transformers' HyperCLOVAXConfig.
func importHyperCLOVAX(m *importer) *ir.Graph {
	attention, embedding := m.truth("attention_bias", false), m.factor("embedding_multiplier")
	d := &decoder{architecture: "HyperCLOVAXForCausalLM", modelled: hyperCLOVAXModelled, inert: hyperCLOVAXInert,
		layers: 32, hidden: 4096, intermediate: 11008, heads: 32, vocab: 32000, positions: 2048,
		check:      (*importer).refuseUnmodelled,
		biased:     projections{heads: attention, o: attention, mlp: m.truth("mlp_bias", false)},
		embedScale: func(*ir.Model) float64 { return embedding }, branchScale: m.factor("residual_multiplier"),
		logitsScale: m.factor("logits_scaling")}
	if _, ok := m.value("attention_multiplier"); ok {
		d.attnScale = m.factor("attention_multiplier")
	}
	if m.truth("use_post_norm", true) {
		d.postNorms, d.names = true, &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{
			"post_attn_norm": "post_norm1", "post_mlp_norm": "post_norm2"}}
		if d.branchScale != 1 {
			m.fail(codeNotModelled, "residual_multiplier", "is %g, of branches that end in a norm, which is not "+
				"modelled; accepted: 1, or use_post_norm false", d.branchScale)
		}
	}
	return m.decoder(d)
}

var hyperCLOVAXModelled = append(slices.Clone(graniteModelled), "use_post_norm")

// hyperCLOVAXInert are the inert fields of a HyperCLOVA X.
var hyperCLOVAXInert = func() map[string]known {
	inert := maps.Clone(graniteInert)
	inert["auto_map"] = isCodeOf("hyperclovax", "HyperCLOVAX")
	inert["end_token_id"] = whatever
	return inert
}()
