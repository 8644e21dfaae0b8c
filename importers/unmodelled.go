package importers

import (
	"maps"
	"slices"
)

// Unmodelled returns common model types without an importer, in order, each with the reason.
func Unmodelled() (types []string, why map[string]string) {
	return slices.Sorted(maps.Keys(unmodelled)), maps.Clone(unmodelled)
}

// What several types have that no importer models.
const (
	hasExperts                = "it has experts"
	hasLatent                 = "it has latent attention"
	hasLatentAndExperts       = "it has latent attention and experts"
	hasRecurrent              = "it has recurrent layers"
	hasRecurrentAndExperts    = "it has recurrent layers and experts"
	hasEncoder                = "it has an encoder besides the decoder"
	isEncoder                 = "it is an encoder"
	isStateSpace              = "it is a state-space model"
	hasSinks                  = "it has attention sinks"
	hasExpertsAndSinks        = "it has experts and attention sinks"
	hasConvolutions           = "it has convolutional layers"
	hasExpertsAndConvolutions = "it has experts and convolutions"
	takesImages               = "it takes images"
	hasNormsAfter             = "its norms follow the sums"
	hasSinusoids              = "its positions are sinusoids"
	hasFused                  = "its fused projections are not modelled"
	hasALiBi                  = "it has ALiBi positions"
	hasNoImporter             = "amkc has its parts, and no importer for it"
)

// unmodelled says what model types compute that no importer models. Together with Families it has every type with which
// transformers generates text (testdata/configs/causal.txt), and some besides them.
var unmodelled = map[string]string{
	"afmoe":                    hasExperts,
	"apertus1p5_text":          "its logits may be of a part of the vocabulary",
	"aria_text":                hasExperts,
	"axk1":                     hasLatentAndExperts,
	"axk2":                     "it has latent attention to chosen positions, and experts",
	"baichuan":                 hasFused,
	"bailing_hybrid":           "it has recurrent layers, latent attention and experts",
	"bamba":                    hasRecurrent,
	"bart":                     hasEncoder,
	"beam":                     hasExperts,
	"bert":                     isEncoder,
	"bert-generation":          hasNormsAfter,
	"big_bird":                 isEncoder,
	"bigbird_pegasus":          hasEncoder,
	"biogpt":                   hasNoImporter,
	"bitnet":                   "it has ternary weights, and norms within attention and MLP",
	"blenderbot":               hasEncoder,
	"blenderbot-small":         hasEncoder,
	"bloom":                    hasALiBi,
	"blt":                      "it reads bytes, and cuts them into patches",
	"camembert":                isEncoder,
	"chatglm":                  "its projections are fused, and transformers has no class to hold logits to",
	"codegen":                  hasFused,
	"cohere2_moe":              hasExperts,
	"cohere_compass_text":      "it is the decoder of a model that takes images, and no importer takes it alone",
	"cpmant":                   "its positions are biases of the scores",
	"ctrl":                     hasSinusoids,
	"data2vec-text":            isEncoder,
	"dbrx":                     hasExperts,
	"deepseek_v2":              hasLatentAndExperts,
	"deepseek_v3":              hasLatentAndExperts,
	"deepseek_v32":             "it has latent attention to chosen positions, and experts",
	"deepseek_v4":              "it has experts, attention sinks and attention to compressed keys",
	"diffllama":                "its attention is the difference of two",
	"doge":                     "its attention has a mask that is computed from the values",
	"dory":                     "its layers run several times, and have L2 norms",
	"dots3_note":               "it takes images and sound, and has latent attention and experts",
	"dots3_note_text":          "it has latent attention to chosen positions, and experts",
	"electra":                  isEncoder,
	"emu3":                     takesImages,
	"ernie":                    isEncoder,
	"exaone":                   hasNoImporter,
	"exaone_moe":               hasExperts,
	"falcon_h1":                hasRecurrent,
	"falcon_mamba":             isStateSpace,
	"flint":                    hasExpertsAndSinks,
	"fuyu":                     takesImages,
	"gemma3n":                  "it takes images and sound, and has embeddings for each layer",
	"gemma3n_text":             "it has embeddings for each layer, and layers that share keys and values",
	"gemma4_assistant":         "it drafts for another model, whose keys and values it reads",
	"gemma4_unified":           "it takes images and sound, and has heads of several sizes",
	"gemma4_unified_assistant": "it drafts for another model, whose keys and values it reads",
	"gemma4_unified_text":      "it has heads of several sizes",
	"git":                      takesImages,
	"glm4_moe_lite":            hasLatentAndExperts,
	"glm_moe_dsa":              "it has latent attention to chosen positions, and experts",
	"got_ocr2":                 takesImages,
	"gpt-sw3":                  "the same models are published as gpt2",
	"gpt_bigcode":              hasNoImporter,
	"gpt_neo":                  hasNoImporter,
	"gpt_neox_japanese":        "the last of its layers alone has a bias",
	"gptj":                     hasNoImporter,
	"granite_swa":              hasSinks,
	"granitemoe_swa":           hasExpertsAndSinks,
	"granitemoehybrid":         hasRecurrentAndExperts,
	"hrm_text":                 "its layers run several times",
	"hunyuan_v1_moe":           hasExperts,
	"hy_v3":                    hasExperts,
	"hy_v4":                    "it has latent attention, experts and attention sinks",
	"inkling2_loop_text":       "it has experts, convolutions and attention sinks, and layers that run several times",
	"inkling2_text":            "it has experts, convolutions and attention sinks",
	"inkling_text":             hasExpertsAndConvolutions,
	"internlm2":                hasFused,
	"internvl_chat":            "its class comes with the checkpoint; transformers has the same models as internvl",
	"jais2":                    hasNoImporter,
	"jamba":                    hasRecurrentAndExperts,
	"jetmoe":                   hasExperts,
	"kimi_linear":              "it has recurrent layers, latent attention and experts",
	"kolibri1":                 hasExperts,
	"laguna":                   hasExperts,
	"lara_mini":                hasRecurrentAndExperts,
	"lfm3":                     hasConvolutions,
	"llama4":                   "it takes images, and has experts and attention in chunks",
	"llama4_text":              "it has experts and attention in chunks",
	"longcat_flash":            hasLatentAndExperts,
	"mamba":                    isStateSpace,
	"mamba2":                   isStateSpace,
	"marian":                   hasEncoder,
	"mbart":                    hasEncoder,
	"megatron-bert":            isEncoder,
	"mellum":                   hasExperts,
	"mimo_v2_flash":            hasExpertsAndSinks,
	"minicpm":                  "its class comes with the checkpoint, and transformers has none to hold logits to",
	"minicpm3":                 hasLatent,
	"minimax":                  hasRecurrentAndExperts,
	"minimax_m3_vl_text":       "it has experts and attention to chosen blocks",
	"mllama":                   "it takes images, and has an encoder besides the decoder",
	"modernbert-decoder":       "it has a dense layer and a norm between the last norm and the logits",
	"moshi":                    "it takes and makes sound",
	"moss_transcribe_diarize":  "it takes sound",
	"mpt":                      hasALiBi,
	"musicgen":                 "it makes sound, and has an encoder besides the decoder",
	"musicgen_melody":          "it makes sound, of texts that an encoder has read",
	"mvp":                      hasEncoder,
	"nanochat":                 "it has norms without weights, of the embedding and of heads too",
	"nemotron_h":               hasRecurrentAndExperts,
	"olmo_hybrid":              hasRecurrent,
	"openai-gpt":               hasNormsAfter,
	"paligemma":                "tokens of a prompt attend to those after them",
	"pegasus":                  hasEncoder,
	"persimmon":                hasNoImporter,
	"phi4_multimodal":          "it takes images and sound",
	"plbart":                   hasEncoder,
	"prophetnet":               hasEncoder,
	"qwen3_vl_moe":             hasExperts,
	"qwen4_exp":                "it takes images, and has recurrent layers and experts",
	"qwen4_exp_text":           "it has recurrent layers and experts",
	"recurrent_gemma":          hasRecurrent,
	"reformer":                 "its attention sorts positions by hashes",
	"rembert":                  isEncoder,
	"roberta":                  isEncoder,
	"roberta-prelayernorm":     isEncoder,
	"roc_bert":                 isEncoder,
	"roformer":                 isEncoder,
	"rwkv":                     "it is a recurrent model",
	"sarvam_mla":               hasLatentAndExperts,
	"sarvam_moe":               hasExperts,
	"t5":                       hasEncoder,
	"trocr":                    hasEncoder,
	"vaultgemma":               hasNoImporter,
	"whisper":                  hasEncoder,
	"xglm":                     hasSinusoids,
	"xlm":                      hasNormsAfter,
	"xlm-roberta":              isEncoder,
	"xlm-roberta-xl":           isEncoder,
	"xlnet":                    "its positions are terms of the scores",
	"xlstm":                    "it is a recurrent model",
	"xmod":                     isEncoder,
	"Yi":                       "this is the form with its own remote code; the same models are published as llama",
	"youtu":                    hasLatent,
	"zamba":                    hasRecurrent,
	"zamba2":                   hasRecurrent,
	"zaya":                     hasExpertsAndConvolutions,
}
