package importers

import (
	"cmp"
	"maps"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
)

// A composite is a model of several parts, such as one that sees images. amkc compiles its language model, which
// text_config describes, and leaves out the other parts. Variable composites is the table of them.
type composite struct {
	class   string           // that generates text
	flat    bool             // without text_config, its fields stand alongside the others
	texts   []string         // model types of the language model; the first is what an absent one means
	inert   map[string]known // fields of the other parts, and the inert ones of every config
	layouts []layout         // of the tensors of the language model; the first is the published one
	others  []string         // what the names of the tensors of other parts begin with
	ties    tying            // how the class decides whether embeddings are tied
	caps    bool             // the class caps logits as the language model does
}

// A layout is what the names of a checkpoint have in place of "model." and "lm_head" of a model of text alone.
type layout struct{ body, head string }

// tying is what decides whether embeddings are tied, alongside the field outside of the language model's.
type tying int

const (
	tiedByFiles  tying = iota // without that field, the files
	tiedOutside               // nothing: without that field they are
	tiedByEither              // that field or the one of the language model
)

// A languageModel is the part of a composite that is compiled.
type languageModel struct {
	*composite
	outer  *checkpoint.Document // the config of the composite; nil: the fields of both stand in one object
	assume []string             // fields of outer that the user vouches for
	said   *bool                // what outer says of tied embeddings; nil: nothing
}

const textConfig = "text_config"

// importComposite builds the graph of the language model of a composite.
func importComposite(m *importer) *ir.Graph {
	w := composites[m.text("model_type", "")]
	m.part = &languageModel{composite: w}
	m.checkArchitecture(w.class, "")
	if _, stated := m.value("tie_word_embeddings"); stated || w.ties == tiedOutside {
		says := m.truth("tie_word_embeddings", true)
		m.part.said = &says
	}
	v, _ := m.doc.Get(textConfig)
	text, nested := v.(*checkpoint.Object)
	if !nested && (v != nil || !w.flat) {
		m.fail(codeField, textConfig, "is %s; want an object, which describes the language model", spell(v))
		return nil
	}
	m.diags.Add(diag.Warningf(codeLeftOut, m.pos("vision_config"), "the vision tower and its projector are left out; "+
		"what is compiled reads text alone"))
	for _, other := range w.others {
		m.leftOut = append(m.leftOut, other, "model."+other)
	}
	kind := w.texts[0]
	if nested {
		m.readQuantised()
		m.enter(text)
		kind = m.text("model_type", kind)
	}
	if !slices.Contains(w.texts, kind) {
		reason := ""
		if why := unmodelled[kind]; why != "" {
			reason = ": " + why
		}
		m.fail(codeModelType, "model_type", "is %s%s; want %s", spell(kind), reason, quoted(w.texts))
		return nil
	}
	return texts[kind](m)
}

// enter lets the importer read the fields of the language model from then on. Its dtype is that of the composite, if
// the config says one.
func (m *importer) enter(text *checkpoint.Object) {
	stated := func(field string) bool {
		_, ok := m.value(field)
		return ok
	}
	if m.src.DType == nil && (stated("dtype") || stated("torch_dtype")) {
		dtype := m.chooseDType()
		m.src.DType = &dtype
	}
	outer := m.doc
	missing := func(field string) bool {
		_, there := outer.Get(field)
		return !there
	}
	m.part.outer = outer
	m.part.assume = slices.DeleteFunc(slices.Clone(m.src.AssumeInert), missing)
	m.src.AssumeInert = slices.DeleteFunc(slices.Clone(m.src.AssumeInert), func(f string) bool { return !missing(f) })
	m.doc = &checkpoint.Document{Name: outer.Name + ": " + textConfig, Object: text}
}

// adopt makes a family's decoder that of the language model of a composite: it holds the fields alongside the language
// model's, and follows the class of the composite in what that does otherwise than a model of text alone.
func (m *importer) adopt(d *decoder) {
	p := m.part
	d.architecture = p.class
	d.names = m.namesWithin(cmp.Or(d.names, plainNames))
	d.tied = m.tiedWithin(d)
	d.fields = maps.Clone(d.fields)
	if d.fields == nil {
		d.fields = map[string]string{}
	}
	d.fields["tie_word_embeddings"] = "" // which has been read
	d.inert = maps.Clone(d.inert)
	maps.Copy(d.inert, textInert)
	if p.outer == nil {
		for field, k := range p.inert {
			if _, own := d.inert[field]; !own {
				d.inert[field] = k
			}
		}
		d.inert[textConfig] = isNull
	} else {
		m.checkOuter(d)
	}
	if d.logitsCap > 0 && !p.caps {
		m.fail(codeNotModelled, "final_logit_softcapping", "is %g, and transformers caps no logits of a model that "+
			"sees images; accepted: null", d.logitsCap)
	}
	for _, field := range []string{"logit_scale", "logits_scaling"} { // which the bare head has no use for
		if i := slices.Index(d.modelled, field); i >= 0 {
			d.modelled = slices.Delete(slices.Clone(d.modelled), i, i+1)
			d.inert[field] = whatever
		}
	}
	if d.logitsScale != 0 && d.logitsScale != 1 {
		m.diags.Add(diag.Warningf(codeLeftOut, m.doc.Name, "logits are not multiplied by %g, as in a model of text "+
			"alone: transformers multiplies no logits of a model that sees images", d.logitsScale))
		d.logitsScale = 0
	}
}

// checkOuter refuses fields alongside those of the language model that are neither known nor copies of its own.
func (m *importer) checkOuter(d *decoder) {
	outer := &fields{doc: m.part.outer}
	modelled := append(slices.Clone(outerModelled), textConfig)
	for _, field := range outer.doc.Keys() {
		own, there := m.doc.Get(field)
		if v, _ := outer.doc.Get(field); there && slices.Contains(d.modelled, field) && same(own, v) {
			modelled = append(modelled, field)
		}
	}
	outer.checkFields(modelled, m.part.inert, m.part.assume)
	m.diags.Add(outer.diags...)
}

// namesWithin are those of the tensors of the language model: in the layout that the files have, or the published one.
func (m *importer) namesWithin(alone *tensorNames) *tensorNames {
	var all []*tensorNames
	for _, l := range m.part.layouts {
		names := *alone
		names.body, names.head = l.body, l.head
		if m.hasTensor(names.embedding()) {
			return &names
		}
		all = append(all, &names)
	}
	return all[0]
}

// hasTensor reports whether the files are known to hold a tensor.
func (m *importer) hasTensor(name string) bool {
	if m.src.Weights == nil {
		return m.src.Tensors[name]
	}
	_, there := m.src.Weights.Tensor(name)
	return there
}

// tiedWithin decides whether the embeddings of the language model are tied.
func (m *importer) tiedWithin(d *decoder) bool {
	const field = "tie_word_embeddings"
	said := m.part.said
	if m.part.outer == nil {
		return said != nil && *said
	}
	_, stated := m.value(field)
	own := m.truth(field, d.tied)
	switch {
	case m.part.ties == tiedByEither:
		return own || said != nil && *said
	case said != nil && stated && own != *said:
		m.fail(codeField, field, "is %t, and outside of %s %t; want the same in both", own,
			textConfig, *said)
		return own
	case said != nil:
		return *said
	case stated && own:
		return true
	case m.src.Weights != nil || m.src.Tensors != nil:
		return !m.hasTensor(d.names.logits())
	}
	return own
}

// outerModelled are the fields that are read alongside those of the language model.
var outerModelled = []string{"model_type", "architectures", "torch_dtype", "dtype", "tie_word_embeddings",
	"quantization_config", "quantization", "compression_config"}

// textInert are fields that configs of language models carry, and only other parts of the composite read.
var textInert = map[string]known{
	"neftune_noise_alpha": whatever, "perceiver_config": whatever, "pixel_shuffle_factor": whatever,
	"use_resampler": whatever, "qk_layer_norms": isFalse.does(headNorm),
	"image_token_id": whatever, "video_token_id": whatever, "vision_token_id": whatever,
	"vision_start_token_id": whatever, "vision_end_token_id": whatever,
}

// texts import language models of composites, by their model_type. Their tensors have the names of a Llama, but for
// parts of layers, and their logits have no bias.
var texts = map[string]func(*importer) *ir.Graph{
	"arcee": importArcee, "cohere": importCohere, "cohere2": importCohere2, "cwm": importCWM,
	"ernie4_5": importErnie45, "exaone4": importExaone4, "gemma": importGemma, "gemma3_text": importGemma3Text,
	"gemma4_text": importGemma4Text,
	"glm":         importGLM, "glm4": importGLM4, "granite": importGranite, "helium": importHelium,
	"hunyuan_v1_dense": importHunyuan, "hyperclovax": importHyperCLOVAX, "internlm3": importInternLM3,
	"llama": importLlama, "ministral": importMinistral, "ministral3": importMinistral3, "mistral": importMistral,
	"nemotron": importNemotron, "olmo": importOLMo, "olmo2": importOLMo2, "olmo3": importOLMo3, "phi3": importPhi3,
	"qwen2": importQwen2, "qwen3": importQwen3, "seed_oss": importSeedOSS, "smollm3": importSmolLM3,
	"stablelm": importStableLM, "starcoder2": importStarcoder2, "qwen2_vl_text": importQwen2VLText,
	"qwen2_5_vl_text": importQwen2VLText, "qwen3_vl_text": importQwen3VLText,
	"qwen3_5_moe_text": importQwen35MoEText, "qwen3_5_text": importQwen35Text,
}

// ofImages are the model types of language models that come with towers of their own alone.
var ofImages = []string{"gemma4_text", "qwen2_5_vl_text", "qwen2_vl_text", "qwen3_5_moe_text", "qwen3_5_text",
	"qwen3_vl_text"}

// anyText are the model types of language models that transformers loads for themselves; absent is what no model_type
// means.
func anyText(absent string) []string {
	types := slices.DeleteFunc(slices.Sorted(maps.Keys(texts)), func(kind string) bool {
		return kind == absent || slices.Contains(ofImages, kind)
	})
	return append([]string{absent}, types...)
}

// Layouts of tensors. Files of transformers 5 have the language model within the model, and those of before have a
// model of text within the composite.
var (
	textWithin = layout{"model.language_model.", "lm_head"}
	textBeside = layout{"language_model.model.", "language_model.lm_head"}
	plainText  = layout{"model.", "lm_head"}
)

// LLaVA, and composites that are built alike.
var (
	llavaLayouts = []layout{textBeside, textWithin}
	llavaOthers  = []string{"vision_tower.", "multi_modal_projector."}
	llavaFields  = []string{"image_seq_length", "projector_hidden_act",
		"vision_feature_layer", "vision_feature_select_strategy", "multimodal_projector_bias", "ignore_index",
		"vocab_size"}
)

// composites are the models of which amkc compiles the language model, by model_type.
var composites = map[string]*composite{
	"aya_vision": {class: "AyaVisionForConditionalGeneration", texts: anyText("cohere2"),
		layouts: llavaLayouts, others: llavaOthers,
		inert: towersInert("downsample_factor", "adapter_layer_norm_eps", "alignment_intermediate_size")},
	"cohere2_vision": {class: "Cohere2VisionForConditionalGeneration", texts: anyText("cohere2"),
		layouts: []layout{textWithin, textBeside}, others: llavaOthers,
		inert: towersInert("downsample_factor", "alignment_intermediate_size")},
	"gemma3": {class: "Gemma3ForConditionalGeneration", texts: []string{"gemma3_text"}, ties: tiedOutside,
		layouts: llavaLayouts, others: llavaOthers,
		inert: imageInert("mm_tokens_per_image", "boi_token_index", "eoi_token_index", "boi_token_id", "eoi_token_id")},
	"gemma4": {class: "Gemma4ForConditionalGeneration", texts: []string{"gemma4_text"}, ties: tiedOutside, caps: true,
		layouts: []layout{textWithin},
		others:  []string{"vision_tower.", "audio_tower.", "embed_vision.", "embed_audio."},
		inert: imageInert("audio_config", "audio_token_id", "boa_token_id", "eoa_token_index", "boi_token_id",
			"eoi_token_id", "video_token_id")},
	"idefics3": {class: "Idefics3ForConditionalGeneration", texts: anyText("llama"),
		layouts: ideficsLayouts, others: ideficsOthers, inert: towersInert(ideficsFields...)},
	"internvl": {class: "InternVLForConditionalGeneration", texts: anyText("qwen2"),
		layouts: llavaLayouts, others: llavaOthers, inert: towersInert("downsample_ratio")},
	"llava": {class: "LlavaForConditionalGeneration", texts: anyText("llama"), ties: tiedByEither,
		layouts: llavaLayouts, others: llavaOthers, inert: towersInert()},
	"llava_next": {class: "LlavaNextForConditionalGeneration", texts: anyText("llama"),
		layouts: llavaLayouts, others: append([]string{"image_newline"}, llavaOthers...),
		inert: towersInert("image_grid_pinpoints", "use_image_newline_parameter")},
	"llava_onevision": {class: "LlavaOnevisionForConditionalGeneration", texts: anyText("qwen2"), ties: tiedByEither,
		layouts: llavaLayouts, others: append([]string{"image_newline"}, llavaOthers...),
		inert: towersInert("image_grid_pinpoints", "use_image_newline_parameter", "vision_aspect_ratio",
			"video_token_index", "video_token_id")},
	"mistral3": {class: "Mistral3ForConditionalGeneration", texts: []string{"mistral", "ministral3"},
		layouts: llavaLayouts, others: llavaOthers,
		inert: imageInert("multimodal_projector_bias", "projector_hidden_act", "spatial_merge_size",
			"vision_feature_layer")},
	"qwen2_5_vl":  qwenVL("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text"),
	"qwen2_vl":    qwenVL("Qwen2VLForConditionalGeneration", "qwen2_vl_text"),
	"qwen3_5":     qwen35VL("Qwen3_5ForConditionalGeneration", "qwen3_5_text"),
	"qwen3_5_moe": qwen35VL("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text"),
	"qwen3_vl": {class: "Qwen3VLForConditionalGeneration", texts: []string{"qwen3_vl_text"},
		layouts: []layout{textWithin}, others: []string{"visual."}, inert: towersInert(qwenVLFields...)},
	"smolvlm": {class: "SmolVLMForConditionalGeneration", texts: anyText("llama"),
		layouts: ideficsLayouts, others: ideficsOthers, inert: towersInert(ideficsFields...)},
}

var (
	ideficsLayouts = []layout{{"model.text_model.", "lm_head"}}
	ideficsOthers  = []string{"vision_model.", "connector."}
	ideficsFields  = []string{"scale_factor", "image_seq_len", "use_reentrant_checkpointing", "_pad_token_id"}
)

// qwenVL is a Qwen2 that sees images. In published configs the fields of its language model stand alongside the others.
func qwenVL(class, text string) *composite {
	return &composite{class: class, flat: true, texts: []string{text}, ties: tiedByEither,
		layouts: []layout{plainText, textWithin}, others: []string{"visual."}, inert: towersInert(qwenVLFields...)}
}

// qwen35VL is a Qwen3.5 that sees images.
func qwen35VL(class, text string) *composite {
	return &composite{class: class, texts: []string{text}, layouts: []layout{textWithin}, others: []string{"visual."},
		inert: towersInert(append(slices.Clone(qwenVLFields), "language_model_only")...)}
}

var qwenVLFields = []string{"video_token_id", "vision_start_token_id", "vision_end_token_id", "vision_token_id"}

// towersInert are fields that only towers and projectors need, those of all LLaVAs among them, and the inert ones of
// every config.
func towersInert(more ...string) map[string]known {
	return imageInert(slices.Concat(llavaFields, more)...)
}

// imageInert are fields that only images need, and the inert ones of every config.
func imageInert(fields ...string) map[string]known {
	inert := maps.Clone(llamaInert)
	for _, field := range append(fields, "vision_config", "image_token_index", "image_token_id") {
		inert[field] = whatever
	}
	return inert
}
