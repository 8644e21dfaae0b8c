package passes

import (
	"maps"
	"slices"

	"amkc/ir/diag"
	"amkc/passes/checkpoint"
)

// A textPart is what amkc compiles of a model that sees images: the decoder that text_config describes.
type textPart struct {
	architecture string            // of the whole
	inert        map[string]known  // fields beside text_config
	types        []string          // that text_config may be of; the first is what an absent model_type means
	parts        map[string]string // of tensorNames
	tied         bool              // embeddings are tied where nothing is said beside text_config
}

// textPart checks what stands beside text_config, and lets the importer read text_config from then on. It returns what
// the config says of tied embeddings, outside or inside: nil for nothing. It reports false if there is no text_config.
func (m *importer) textPart(p *textPart) (tied *bool, ok bool) {
	whole, assumed := m.doc, m.src.AssumeInert
	outer := func(field string) bool {
		_, there := whole.Get(field)
		return there
	}
	m.checkFields(wholeModelled, p.inert, slices.DeleteFunc(slices.Clone(assumed), func(field string) bool {
		return !outer(field)
	}))
	m.checkArchitecture(p.architecture, "")
	m.readQuantised()
	text, ok := get(whole.Object, "text_config").(*checkpoint.Object)
	if !ok {
		m.fail(codeField, "text_config", "is %s; want an object, which describes the language model",
			spell(get(whole.Object, "text_config")))
		return nil, false
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
	if p.tied || stated("tie_word_embeddings") {
		says := m.truth("tie_word_embeddings", true)
		tied = &says
	}
	m.src.AssumeInert = slices.DeleteFunc(slices.Clone(assumed), outer)
	m.doc = &checkpoint.Document{Name: whole.Name + ": text_config", Object: text}
	if kind := m.text("model_type", p.types[0]); !slices.Contains(p.types, kind) {
		m.fail(codeModelType, "model_type", "is %s; want %s", spell(kind), quoted(p.types))
	}
	if stated("tie_word_embeddings") {
		says := m.truth("tie_word_embeddings", true)
		if tied != nil && says != *tied {
			m.fail(codeField, "tie_word_embeddings", "is %t, and outside of text_config %t; want the same in both",
				says, *tied)
		}
		tied = &says
	}
	for _, part := range []string{"vision_tower.", "multi_modal_projector."} {
		m.leftOut = append(m.leftOut, part, "model."+part)
	}
	return tied, true
}

// namesOfText are those of the files: published checkpoints have the decoder's tensors as a model of its own has them,
// behind language_model, and others have them in the model.
func (m *importer) namesOfText(p *textPart) *tensorNames {
	within := &tensorNames{body: "model.language_model.", head: "lm_head", parts: p.parts}
	if m.hasTensor(within.embedding()) {
		return within
	}
	return &tensorNames{body: "language_model.model.", head: "language_model.lm_head", parts: p.parts}
}

// hasTensor reports whether the files are known to hold a tensor.
func (m *importer) hasTensor(name string) bool {
	if m.src.Weights == nil {
		return m.src.Tensors[name]
	}
	_, there := m.src.Weights.Tensor(name)
	return there
}

// wholeModelled are the fields that are read beside text_config, and it.
var wholeModelled = []string{"model_type", "architectures", "text_config", "torch_dtype", "dtype",
	"tie_word_embeddings", "quantization_config", "quantization", "compression_config"}

// imageInert are fields that only images need, and the inert ones of every config.
func imageInert(fields ...string) map[string]known {
	inert := maps.Clone(llamaInert)
	for _, field := range append(fields, "vision_config") {
		inert[field] = whatever
	}
	return inert
}
