package passes

import (
	"fmt"
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
	{"cohere", "Command R, Command R+", true, true, importCohere},
	{"cohere2", "Command R7B, Command A", true, true, importCohere2},
	{"cwm", "CWM of Meta", true, true, importCWM},
	{"ernie4_5", "Ernie 4.5, its dense models", true, true, importErnie45},
	{"exaone4", "EXAONE 4", true, true, importExaone4},
	{"falcon", "Falcon 7B, 40B and 180B", true, true, importFalcon},
	{"gemma", "Gemma, the first", true, true, importGemma},
	{"gemma2", "Gemma 2", true, true, importGemma2},
	{"gemma3", "Gemma 3 that sees images: the part that reads text", true, true, importGemma3},
	{"gemma3_text", "Gemma 3", true, true, importGemma3Text},
	{"glm", "GLM-4 9B of 2024", true, true, importGLM},
	{"glm4", "GLM-4 9B and 32B of 2025", true, true, importGLM4},
	{"gpt2", "GPT-2, DistilGPT-2", true, true, importGPT2},
	{"gpt_neox", "Pythia, GPT-NeoX", true, true, importGPTNeoX},
	{"granite", "Granite 3.x, its dense models", true, true, importGranite},
	{"helium", "Helium 1", true, true, importHelium},
	{"hunyuan_v1_dense", "Hunyuan, its dense models", true, true, importHunyuan},
	{"hyperclovax", "HyperCLOVA X SEED", true, true, importHyperCLOVAX},
	{"internlm3", "InternLM3", true, true, importInternLM3},
	{"iquestcoder", "IQuest Coder V1", true, true, importIQuestCoder},
	{"llama", "Llama 2 and 3.x, TinyLlama, SmolLM2, Yi", true, true, importLlama},
	{"ministral", "Ministral 8B", true, true, importMinistral},
	{"ministral3", "Ministral 3 without images", true, true, importMinistral3},
	{"mistral", "Mistral, Mistral Nemo, Mistral Small 2409 and 2501", true, true, importMistral},
	{"mistral3", "Mistral Small 3.1 and 3.2, Ministral 3: the part that reads text", true, true, importMistral3},
	{"nemotron", "Nemotron-4, Minitron", true, true, importNemotron},
	{"olmo", "OLMo, the first", true, true, importOLMo},
	{"olmo2", "OLMo 2", true, true, importOLMo2},
	{"olmo3", "OLMo 3", true, true, importOLMo3},
	{"opt", "OPT, but for OPT-350m", true, true, importOPT},
	{"phi", "Phi-1, Phi-1.5, Phi-2", true, true, importPhi},
	{"phi3", "Phi-3 and 3.5 mini, Phi-3-medium, Phi-4, Phi-4-mini", true, true, importPhi3},
	{"qwen2", "Qwen2, Qwen2.5", true, true, importQwen2},
	{"qwen3", "Qwen3, its dense models", true, true, importQwen3},
	{"seed_oss", "Seed-OSS", true, true, importSeedOSS},
	{"smollm3", "SmolLM3", true, true, importSmolLM3},
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
