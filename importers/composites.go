package importers

import (
	"maps"
	"slices"

	"amkc/ir"
)

// texts import language models of composites, by their model_type. Their tensors have the names of a Llama, but for
// parts of layers, and their logits have no bias.
var texts = map[string]func(*importer) *ir.Graph{
	"arcee": importArcee, "cohere": importCohere, "cohere2": importCohere2, "cwm": importCWM,
	"ernie4_5": importErnie45, "exaone4": importExaone4, "gemma": importGemma, "gemma3_text": importGemma3Text,
	"glm": importGLM, "glm4": importGLM4, "granite": importGranite, "helium": importHelium,
	"hunyuan_v1_dense": importHunyuan, "hyperclovax": importHyperCLOVAX, "internlm3": importInternLM3,
	"llama": importLlama, "ministral": importMinistral, "ministral3": importMinistral3, "mistral": importMistral,
	"nemotron": importNemotron, "olmo": importOLMo, "olmo2": importOLMo2, "olmo3": importOLMo3, "phi3": importPhi3,
	"qwen2": importQwen2, "qwen3": importQwen3, "seed_oss": importSeedOSS, "smollm3": importSmolLM3,
	"stablelm": importStableLM, "starcoder2": importStarcoder2, "qwen2_vl_text": importQwen2VLText,
	"qwen2_5_vl_text": importQwen2VLText, "qwen3_vl_text": importQwen3VLText,
}

// anyText are the model types of language models that transformers loads for themselves; absent is what no model_type
// means.
func anyText(absent string) []string {
	types := slices.DeleteFunc(slices.Sorted(maps.Keys(texts)), func(kind string) bool {
		return kind == absent || kind == "qwen2_vl_text" || kind == "qwen2_5_vl_text" || kind == "qwen3_vl_text"
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
	"qwen2_5_vl": qwenVL("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text"),
	"qwen2_vl":   qwenVL("Qwen2VLForConditionalGeneration", "qwen2_vl_text"),
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
