package passes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/ir"
)

// A Family is what amkc compiles of one model_type.
type Family struct {
	ModelType string
	Models    string // the better known ones
	// Emitted says that the kernel has all stages of it; else programs are proved and run by the reference VM alone.
	Emitted bool
	// Measured says that docs/results has rows of it, on GPUs.
	Measured bool
	build    func(*importer) *ir.Graph
}

// Families are all that have an importer, by model type. Each is held to the logits of transformers.
var Families = []Family{
	{"apertus", "Apertus", true, true, importApertus},
	{"arcee", "Arcee AFM", true, true, importArcee},
	{"aya_vision", "Aya Vision: the part that reads text", true, false, importComposite},
	{"cohere", "Command R, Command R+", true, true, importCohere},
	{"cohere2", "Command R7B, Command A", true, true, importCohere2},
	{"cohere2_vision", "Command A Vision: the part that reads text", true, false, importComposite},
	{"cwm", "CWM of Meta", true, true, importCWM},
	{"ernie4_5", "Ernie 4.5, its dense models", true, true, importErnie45},
	{"exaone4", "EXAONE 4", true, true, importExaone4},
	{"falcon", "Falcon 7B, 40B and 180B", true, true, importFalcon},
	{"gemma", "Gemma, the first", true, true, importGemma},
	{"gemma2", "Gemma 2", true, true, importGemma2},
	{"gemma3", "Gemma 3 that sees images: the part that reads text", true, true, importComposite},
	{"gemma3_text", "Gemma 3", true, true, importGemma3Text},
	{"glm", "GLM-4 9B of 2024", true, true, importGLM},
	{"glm4", "GLM-4 9B and 32B of 2025", true, true, importGLM4},
	{"gpt2", "GPT-2, DistilGPT-2", true, true, importGPT2},
	{"gpt_neox", "Pythia, GPT-NeoX", true, true, importGPTNeoX},
	{"granite", "Granite 3.x, its dense models", true, true, importGranite},
	{"helium", "Helium 1", true, true, importHelium},
	{"hunyuan_v1_dense", "Hunyuan, its dense models", true, true, importHunyuan},
	{"hyperclovax", "HyperCLOVA X SEED", true, true, importHyperCLOVAX},
	{"idefics3", "Idefics 3, SmolVLM of 256M and 500M: the part that reads text", true, false, importComposite},
	{"internlm3", "InternLM3", true, true, importInternLM3},
	{"internvl", "InternVL 3 and 3.5 (-hf): the part that reads text", true, false, importComposite},
	{"iquestcoder", "IQuest Coder V1", true, true, importIQuestCoder},
	{"llama", "Llama 2 and 3.x, TinyLlama, SmolLM2, Yi", true, true, importLlama},
	{"llava", "LLaVA 1.5: the part that reads text", true, false, importComposite},
	{"llava_next", "LLaVA 1.6 (NeXT), Granite Vision: the part that reads text", true, false, importComposite},
	{"llava_onevision", "LLaVA-OneVision: the part that reads text", true, false, importComposite},
	{"ministral", "Ministral 8B", true, true, importMinistral},
	{"ministral3", "Ministral 3 without images", true, true, importMinistral3},
	{"mistral", "Mistral, Mistral Nemo, Mistral Small 2409 and 2501", true, true, importMistral},
	{"mistral3", "Mistral Small 3.1 and 3.2, Ministral 3: the part that reads text", true, true, importComposite},
	{"nemotron", "Nemotron-4, Minitron", true, true, importNemotron},
	{"olmo", "OLMo, the first", true, true, importOLMo},
	{"olmo2", "OLMo 2", true, true, importOLMo2},
	{"olmo3", "OLMo 3", true, true, importOLMo3},
	{"opt", "OPT, but for OPT-350m", true, true, importOPT},
	{"phi", "Phi-1, Phi-1.5, Phi-2", true, true, importPhi},
	{"phi3", "Phi-3 and 3.5 mini, Phi-3-medium, Phi-4, Phi-4-mini", true, true, importPhi3},
	{"qwen2", "Qwen2, Qwen2.5", true, true, importQwen2},
	{"qwen2_5_vl", "Qwen2.5-VL: the part that reads text", true, false, importComposite},
	{"qwen2_vl", "Qwen2-VL: the part that reads text", true, false, importComposite},
	{"qwen3", "Qwen3, its dense models", true, true, importQwen3},
	{"qwen3_vl", "Qwen3-VL, its dense models: the part that reads text", true, false, importComposite},
	{"seed_oss", "Seed-OSS", true, true, importSeedOSS},
	{"smollm3", "SmolLM3", true, true, importSmolLM3},
	{"smolvlm", "SmolVLM 2: the part that reads text", true, false, importComposite},
	{"stablelm", "StableLM 2 1.6B and 12B, StableLM 3B", true, true, importStableLM},
	{"starcoder2", "StarCoder 2", true, true, importStarcoder2},
}

// familyOf returns the family of a model type.
func familyOf(modelType string) (Family, bool) {
	i := slices.IndexFunc(Families, func(f Family) bool { return f.ModelType == modelType })
	if i < 0 {
		return Family{}, false
	}
	return Families[i], true
}

// accepted names the model types that have an importer.
func accepted() string {
	var names []string
	for _, f := range Families {
		names = append(names, fmt.Sprintf("%q", f.ModelType))
	}
	return strings.Join(names, ", ")
}

// Unmodelled returns better known model types that no importer takes, in order, and for each why.
func Unmodelled() (types []string, why map[string]string) {
	return slices.Sorted(maps.Keys(unmodelled)), maps.Clone(unmodelled)
}

// unmodelled says what the better known families compute that no importer models.
var unmodelled = map[string]string{
	"baichuan":         "its fused projections are not modelled",
	"bart":             "it has an encoder beside the decoder",
	"bert":             "it is an encoder",
	"bloom":            "it has ALiBi positions, LayerNorm, GELU and biases",
	"chatglm":          "it has fused projections, biases and a partial rotary embedding",
	"dbrx":             "it has experts and LayerNorm",
	"deepseek_v2":      "it has latent attention and experts",
	"deepseek_v3":      "it has latent attention and experts",
	"falcon_h1":        "it has recurrent layers",
	"falcon_mamba":     "it is a state-space model",
	"gemma3n":          "it is a multimodal model with embeddings for each layer",
	"glm4_moe":         "it has experts",
	"gpt_bigcode":      "it has learned position embeddings, LayerNorm, GELU and biases",
	"gpt_oss":          "it has experts, attention sinks and sliding windows",
	"gptj":             "it has LayerNorm, GELU, biases and an interleaved partial rotary embedding",
	"granitemoe":       "it has experts",
	"granitemoehybrid": "it has recurrent layers and experts",
	"internlm2":        "its fused projections are not modelled",
	"internvl_chat":    "its class comes with the checkpoint; transformers has the same models as internvl",
	"jamba":            "it has recurrent layers and experts",
	"lfm2":             "it has convolutional layers",
	"llama4":           "it has experts, chunked attention and layers without a rotary embedding",
	"mamba":            "it is a state-space model",
	"mamba2":           "it is a state-space model",
	"minicpm":          "its class comes with the checkpoint, and transformers has none to hold logits to",
	"minicpm3":         "it has latent attention",
	"mixtral":          "it has experts",
	"mllama":           "it is a multimodal model",
	"mpt":              "it has ALiBi positions, LayerNorm and GELU",
	"olmoe":            "it has experts",
	"paligemma":        "tokens of a prompt attend to those after them",
	"phimoe":           "it has experts",
	"qwen2_moe":        "it has experts, and biases on the query, key and value projections",
	"qwen3_moe":        "it has experts, and an RMSNorm on every query and key head",
	"qwen3_next":       "it has recurrent layers and experts",
	"qwen3_vl_moe":     "it has experts, and an RMSNorm on every query and key head",
	"recurrent_gemma":  "it has recurrent layers",
	"rwkv":             "it is a recurrent model",
	"t5":               "it has an encoder beside the decoder",
	"whisper":          "it has an encoder beside the decoder",
	"Yi":               "this is the form with its own remote code; the same models are published as llama",
	"zamba2":           "it has recurrent layers",
}
