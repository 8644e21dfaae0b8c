package importers

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
)

// A Family describes the models of one model_type that amkc compiles.
type Family struct {
	ModelType string
	Models    string // the better known ones
	// Emitted reports that the kernel has all of its stages; otherwise programs are only proved and run on the
	// reference VM.
	Emitted bool
	// GPUs are the GPUs for which docs/results has rows of the family.
	GPUs  []string
	build func(*importer) *ir.Graph
}

// CheckedAgainst returns the reference of its programs, and where they are compared.
func (f *Family) CheckedAgainst() string {
	if len(f.GPUs) == 0 {
		return "transformers"
	}
	return "transformers, also on " + strings.Join(f.GPUs, " and ")
}

// GPUs that families are measured on.
var (
	h200        = []string{"H200"}
	h100AndH200 = []string{"H100", "H200"}
)

// Families are all families with an importer, by model type. Each is compared with the logits of transformers.
var Families = []Family{
	{"apertus", "Apertus", true, h200, importApertus},
	{"arcee", "Arcee AFM", true, h200, importArcee},
	{"aya_vision", "Aya Vision: the part that reads text", true, nil, importComposite},
	{"cohere", "Command R, Command R+", true, h200, importCohere},
	{"cohere2", "Command R7B, Command A", true, h200, importCohere2},
	{"cohere2_vision", "Command A Vision: the part that reads text", true, nil, importComposite},
	{"cwm", "CWM of Meta", true, h200, importCWM},
	{"dots1", "dots.llm1", true, nil, importDots1},
	{"ernie4_5", "Ernie 4.5, its dense models", true, h200, importErnie45},
	{"ernie4_5_moe", "Ernie 4.5 with experts: 21B-A3B, 300B-A47B", true, nil, importErnie45MoE},
	{"exaone4", "EXAONE 4", true, h200, importExaone4},
	{"falcon", "Falcon 7B, 40B and 180B", true, h200, importFalcon},
	{"flex_olmo", "FlexOlmo", false, nil, importFlexOLMo},
	{"gemma", "Gemma, the first", true, h200, importGemma},
	{"gemma2", "Gemma 2", true, h200, importGemma2},
	{"gemma3", "Gemma 3 that sees images: the part that reads text", true, h200, importComposite},
	{"gemma3_text", "Gemma 3", true, h200, importGemma3Text},
	{"gemma4", "Gemma 4 that sees images, as of the next row: the part that reads text", true, nil, importComposite},
	{"gemma4_text", "Gemma 4, its dense models without embeddings of layers: 31B, with --dtype fp32 and --cache int8",
		true, nil, importGemma4Text},
	{"glm", "GLM-4 9B of 2024", true, h200, importGLM},
	{"glm4", "GLM-4 9B and 32B of 2025", true, h200, importGLM4},
	{"glm4_moe", "GLM-4.5, GLM-4.5-Air, GLM-4.6", true, nil, importGLM4MoE},
	{"gpt2", "GPT-2, DistilGPT-2", true, h200, importGPT2},
	{"gpt_neox", "Pythia, GPT-NeoX", true, h200, importGPTNeoX},
	{"gpt_oss", "gpt-oss 20B and 120B, as MXFP4 or bf16", true, nil, importGPTOSS},
	{"granite", "Granite 3.x, its dense models", true, h200, importGranite},
	{"granitemoe", "Granite 3.x MoE: 1B-A400M, 3B-A800M", true, nil, importGraniteMoE},
	{"granitemoeshared", "Granite MoE with a shared expert", true, nil, importGraniteMoEShared},
	{"helium", "Helium 1", true, h200, importHelium},
	{"hunyuan_v1_dense", "Hunyuan, its dense models", true, h200, importHunyuan},
	{"hyperclovax", "HyperCLOVA X SEED", true, h200, importHyperCLOVAX},
	{"idefics3", "Idefics 3, SmolVLM of 256M and 500M: the part that reads text", true, nil, importComposite},
	{"internlm3", "InternLM3", true, h200, importInternLM3},
	{"internvl", "InternVL 3 and 3.5 (-hf): the part that reads text", true, nil, importComposite},
	{"iquestcoder", "IQuest Coder V1", true, h200, importIQuestCoder},
	{"lfm2", "LFM2, LFM2.5, their dense models", true, nil, importLFM2},
	{"lfm2_moe", "LFM2-8B-A1B, LFM2.5 with experts", true, nil, importLFM2MoE},
	{"llama", "Llama 2 and 3.x, TinyLlama, SmolLM2, Yi", true, h100AndH200, importLlama},
	{"llava", "LLaVA 1.5: the part that reads text", true, nil, importComposite},
	{"llava_next", "LLaVA 1.6 (NeXT), Granite Vision: the part that reads text", true, nil, importComposite},
	{"llava_onevision", "LLaVA-OneVision: the part that reads text", true, nil, importComposite},
	{"minimax_m2", "MiniMax-M2", true, nil, importMiniMaxM2},
	{"ministral", "Ministral 8B", true, h200, importMinistral},
	{"ministral3", "Ministral 3 without images", true, h200, importMinistral3},
	{"mistral", "Mistral, Mistral Nemo, Mistral Small 2409 and 2501", true, h100AndH200, importMistral},
	{"mistral3", "Mistral Small 3.1 and 3.2, Ministral 3: the part that reads text", true, h200, importComposite},
	{"mixtral", "Mixtral 8x7B and 8x22B", true, nil, importMixtral},
	{"nemotron", "Nemotron-4, Minitron", true, h200, importNemotron},
	{"olmo", "OLMo, the first", true, h200, importOLMo},
	{"olmo2", "OLMo 2", true, h200, importOLMo2},
	{"olmo3", "OLMo 3", true, h200, importOLMo3},
	{"olmoe", "OLMoE 1B-7B", true, nil, importOLMoE},
	{"opt", "OPT, but for OPT-350m", true, h200, importOPT},
	{"phi", "Phi-1, Phi-1.5, Phi-2", true, h200, importPhi},
	{"phi3", "Phi-3 and 3.5 mini, Phi-3-medium, Phi-4, Phi-4-mini", true, h200, importPhi3},
	{"phimoe", "Phi-3.5-MoE, Phi-mini-MoE", false, nil, importPhiMoE},
	{"qwen2", "Qwen2, Qwen2.5", true, h100AndH200, importQwen2},
	{"qwen2_5_vl", "Qwen2.5-VL: the part that reads text", true, nil, importComposite},
	{"qwen2_moe", "Qwen1.5-MoE, Qwen2-57B-A14B", true, nil, importQwen2MoE},
	{"qwen2_vl", "Qwen2-VL: the part that reads text", true, nil, importComposite},
	{"qwen3", "Qwen3, its dense models", true, h100AndH200, importQwen3},
	{"qwen3_5", "Qwen3.5 and later, their dense models: the part that reads text", true, nil, importComposite},
	{"qwen3_5_moe", "Qwen3.5 and later with experts, such as 35B-A3B: the part that reads text", true, nil,
		importComposite},
	{"qwen3_5_moe_text", "Qwen3.5 and later with experts, without images", true, nil, importQwen35MoEText},
	{"qwen3_5_text", "Qwen3.5 and later, their dense models without images", true, nil, importQwen35Text},
	{"qwen3_moe", "Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder", true, nil, importQwen3MoE},
	{"qwen3_next", "Qwen3-Next, Qwen3-Coder-Next", true, nil, importQwen3Next},
	{"qwen3_vl", "Qwen3-VL, its dense models: the part that reads text", true, nil, importComposite},
	{"seed_oss", "Seed-OSS", true, h200, importSeedOSS},
	{"smollm3", "SmolLM3", true, h200, importSmolLM3},
	{"smolvlm", "SmolVLM 2: the part that reads text", true, nil, importComposite},
	{"solar_open", "Solar Open 100B", true, nil, importSolarOpen},
	{"stablelm", "StableLM 2 1.6B and 12B, StableLM 3B", true, h200, importStableLM},
	{"starcoder2", "StarCoder 2", true, h200, importStarcoder2},
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
