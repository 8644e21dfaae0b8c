package passes

import (
	"maps"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/checkpoint"
)

// importGemma3Text builds the graph of a Gemma 3 that reads text alone: a Gemma 2 without a cap of scores, with a norm
// of each head of queries and keys, five layers with a window to one without, and a rotary embedding for either.
// Defaults of absent fields are those of transformers' Gemma3TextConfig.
func importGemma3Text(m *importer) *ir.Graph {
	return m.decoder(gemma3(m, "Gemma3ForCausalLM"))
}

func gemma3(m *importer, architecture string) *decoder {
	attention := m.truth("attention_bias", false)
	return &decoder{architecture: architecture, modelled: gemma3Modelled, inert: gemma3Inert,
		layers: 26, hidden: 2304, intermediate: 9216, heads: 8, kvHeads: 4, headDim: 256, vocab: 262208,
		positions: 131072, tied: true,
		check: (*importer).refuseOfGemma2, windows: gemma3Windows, gate: m.gateOf("hidden_activation", tanhGELU),
		biased:     projections{heads: attention, o: attention},
		unitOffset: true, embedScale: rootOfHidden, postNorms: true, normedHeads: true, ropes: gemma3Ropes,
		names:     postNormNames,
		attnScale: m.scoreScale("query_pre_attn_scalar", 256), logitsCap: m.softCapOf("final_logit_softcapping", 0)}
}

var gemma3Modelled = append(slices.DeleteFunc(slices.Clone(gemma2Modelled), func(field string) bool {
	return field == "attn_logit_softcapping"
}), "sliding_window_pattern", "rope_local_base_freq")

// gemma3Inert are the inert fields of a Gemma 3. transformers reads its cap of scores and caps nothing, so that a value
// is refused: what it should do is not settled.
var gemma3Inert = func() map[string]known {
	inert := maps.Clone(gemma2Inert)
	inert["attn_logit_softcapping"] = llamaInert["attn_logit_softcapping"]
	inert["_sliding_window_pattern"] = whatever // a copy, which the class writes and does not read
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
		parts := full
		where, localWhere = "rope_parameters."+fullAttention, "rope_parameters."+slidingAttention
		full, local = m.ropePart(parts, fullAttention), m.ropePart(parts, slidingAttention)
		for _, key := range parts.Keys() {
			if key != fullAttention && key != slidingAttention {
				m.fail(codeRope, "rope_parameters."+key, "is of no kind of layers; accepted: %q and %q", fullAttention,
					slidingAttention)
			}
		}
	}
	rope := m.ropeOf(where, full, m.ropeTheta("rope_theta", 1e6, where, full), model, trained)
	windowed := m.ropeOf(localWhere, local, m.ropeTheta("rope_local_base_freq", 1e4, localWhere, local), model, trained)
	return rope, &windowed
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

// importGemma3 builds the graph of the text part of a Gemma 3 that sees images too. text_config describes it.
func importGemma3(m *importer) *ir.Graph {
	const architecture = "Gemma3ForConditionalGeneration"
	whole, assumed := m.doc, m.src.AssumeInert
	outer := func(field string) bool {
		_, there := whole.Get(field)
		return there
	}
	m.checkFields(gemma3Whole, gemma3WholeInert, slices.DeleteFunc(slices.Clone(assumed), func(field string) bool {
		return !outer(field)
	}))
	m.checkArchitecture(architecture, "")
	m.refuseQuantised()
	text, ok := get(whole.Object, "text_config").(*checkpoint.Object)
	if !ok {
		m.fail(codeField, "text_config", "is %s; want an object, which describes the language model",
			spell(get(whole.Object, "text_config")))
		return nil
	}
	m.diags.Add(diag.Warningf(codeLeftOut, m.pos("vision_config"), "the vision tower and its projector are left out; "+
		"what is compiled reads text alone"))
	stated := func(field string) bool {
		_, ok := m.value(field)
		return ok
	}
	if m.src.DType == nil && (stated("dtype") || stated("torch_dtype")) {
		dtype := m.chooseDType()
		m.src.DType = &dtype
	}
	tied := m.truth("tie_word_embeddings", true)
	m.src.AssumeInert = slices.DeleteFunc(slices.Clone(assumed), outer)
	m.doc = &checkpoint.Document{Name: whole.Name + ": text_config", Object: text}
	if kind := m.text("model_type", "gemma3_text"); kind != "gemma3_text" {
		m.fail(codeModelType, "model_type", "is %s; want \"gemma3_text\"", spell(kind))
	}
	if m.truth("tie_word_embeddings", true) != tied {
		m.fail(codeField, "tie_word_embeddings", "is %t, and outside of text_config %t; want the same in both", !tied,
			tied)
	}
	d := gemma3(m, architecture)
	d.names = m.gemma3Names()
	if v, ok := m.value("final_logit_softcapping"); ok { // which the class reads in a model of text alone
		m.fail(codeNotModelled, "final_logit_softcapping", "is %s, and transformers caps no logits of a model that "+
			"sees images; accepted: null", spell(v))
	}
	for _, part := range []string{"vision_tower.", "multi_modal_projector."} {
		m.leftOut = append(m.leftOut, part, "model."+part)
	}
	return m.decoder(d)
}

// gemma3Names are those of the files: published checkpoints have the decoder's tensors as a model of its own has them,
// behind language_model, and others have them in the model.
func (m *importer) gemma3Names() *tensorNames {
	within := &tensorNames{body: "model.language_model.", head: "lm_head", parts: postNormParts}
	if m.src.Weights != nil {
		if _, there := m.src.Weights.Tensor(within.embedding()); there {
			return within
		}
	}
	return &tensorNames{body: "language_model.model.", head: "language_model.lm_head", parts: postNormParts}
}

// gemma3Whole are the fields beside text_config that are read.
var gemma3Whole = []string{"model_type", "architectures", "text_config", "torch_dtype", "dtype", "tie_word_embeddings",
	"quantization_config", "quantization"}

// gemma3WholeInert are the fields that only images need, and the inert ones of every config.
var gemma3WholeInert = func() map[string]known {
	inert := maps.Clone(llamaInert)
	for _, field := range []string{"vision_config", "mm_tokens_per_image", "boi_token_index", "eoi_token_index",
		"image_token_index", "boi_token_id", "eoi_token_id", "image_token_id"} {
		inert[field] = whatever
	}
	return inert
}()
