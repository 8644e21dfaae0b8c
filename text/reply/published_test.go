package reply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/chat"
	"amkc/text/jinja"
)

// published are the templates of llama.cpp by how they write: the form of calls, and the mark of thoughts.
var published = map[string][2]string{
	"Apertus-8B-Instruct": {"Apertus", "<|inner_prefix|>"},
	"Apriel-1.6-15b-Thinker-fixed": {"Apriel, Hunyuan A13B, MiniMax-M1",
		"Here are my reasoning steps:"},
	"Bielik-11B-v3.0-Instruct":                      {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", "<think>"},
	"ByteDance-Seed-OSS":                            {"Seed-OSS", "<seed:think>"},
	"Cohere2MoE":                                    {"Command R7B, Command A", "<|START_THINKING|>"},
	"CohereForAI-c4ai-command-r-plus-tool_use":      {"Command R", ""},
	"CohereForAI-c4ai-command-r7b-12-2024-tool_use": {"Command R7B, Command A", "<|START_THINKING|>"},
	"GLM-4.6":                             {"GLM-4.5", "<think>"},
	"GLM-4.7-Flash":                       {"GLM-4.5", "<think>"},
	"GigaChat3-10B-A1.8B":                 {"GigaChat 3", ""},
	"GigaChat3.1-10B-A1.8B":               {"GigaChat 3.1", ""},
	"HuggingFaceTB-SmolLM3-3B":            {"", "<think>"},
	"Kimi-K2-Instruct":                    {"Kimi-K2", ""},
	"Kimi-K2-Thinking":                    {"Kimi-K2", "<think>"},
	"Kimi-K3":                             {"Kimi-K3", ""},
	"LFM2-8B-A1B":                         {"LFM2", ""},
	"LFM2.5-8B-A1B":                       {"LFM2", "<think>"},
	"LFM2.5-Instruct":                     {"LFM2", "<think>"},
	"MiMo-VL":                             {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", ""},
	"MiniMax-M1":                          {"Apriel, Hunyuan A13B, MiniMax-M1", ""},
	"MiniMax-M2":                          {"MiniMax-M2", "<think>"},
	"MiniMax-M3":                          {"", "<mm:think>"},
	"Mistral-Small-3.2-24B-Instruct-2506": {"Mistral Small 3.2, Ministral 3, Devstral", ""},
	"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": {"Qwen3-Coder", "<think>"},
	"NVIDIA-Nemotron-Nano-v2":             {"Nemotron", "<think>"},
	"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", ""},
	"NousResearch-Hermes-3-Llama-3.1-8B-tool_use":   {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", ""},
	"Qwen-QwQ-32B":             {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", "<think>"},
	"Qwen-Qwen2.5-7B-Instruct": {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", ""},
	"Qwen-Qwen3-0.6B":          {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", "<think>"},
	"Qwen3-Coder":              {"Qwen3-Coder", ""},
	"Qwen3.5-4B":               {"Qwen3-Coder", "<think>"},
	"Reka-Edge":                {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", "<think>"},
	"Spark2.5":                 {"GLM-4.5", "<think>"},
	"StepFun3.5-Flash":         {"Qwen3-Coder", "<think>"},
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": {"DeepSeek-R1", "<think>"},
	"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": {"DeepSeek-R1", "<think>"},
	"deepseek-ai-DeepSeek-V3.1":                {"DeepSeek-V3.1", "<think>"},
	"deepseek-ai-DeepSeek-V3.2":                {"DeepSeek-V3.2", "<think>"},
	"deepseek-ai-DeepSeek-V4-Flash-0731":       {"DeepSeek-V4", "<think>"},
	"deepseek-ai-DeepSeek-V4":                  {"DeepSeek-V4", "<think>"},
	"fireworks-ai-llama-3-firefunction-v2":     {"", ""},
	"google-gemma-2-2b-it":                     {"", ""},
	"google-gemma-4-31B-it-interleaved":        {"Gemma 4", ""},
	"google-gemma-4-31B-it":                    {"Gemma 4", ""},
	"ibm-granite-granite-3.3-2B-Instruct":      {"Granite 3", "<think>"},
	"ibm-granite-granite-4.0":                  {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", ""},
	"ibm-granite-granite-4.1":                  {"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4", ""},
	"inclusionai-ling-3.0-flash":               {"GLM-4.5", "<think>"},
	"llama-cpp-deepseek-r1":                    {"DeepSeek-R1", "<think>"},
	"llama-cpp-rwkv-world":                     {"", "<think>"},
	"meetkai-functionary-medium-v3.1":          {"Functionary 3.1", ""},
	"meetkai-functionary-medium-v3.2":          {"Functionary 3.2", ""},
	"meta-llama-Llama-3.1-8B-Instruct":         {"Llama 3, xLAM", ""},
	"meta-llama-Llama-3.2-3B-Instruct":         {"Llama 3, xLAM", ""},
	"meta-llama-Llama-3.3-70B-Instruct":        {"Llama 3, xLAM", ""},
	"microsoft-Phi-3.5-mini-instruct":          {"", ""},
	"mistralai-Ministral-3-14B-Reasoning-2512": {"Mistral Small 3.2, Ministral 3, Devstral", "[THINK]"},
	"mistralai-Mistral-Nemo-Instruct-2407":     {"Mistral", ""},
	"moonshotai-Kimi-K2":                       {"Kimi-K2", ""},
	"muse-glimmer":                             {"Muse", ""},
	"openai-gpt-oss-120b":                      {"gpt-oss", ""},
	"openbmb-MiniCPM5-1B":                      {"MiniCPM5", "<think>"},
	"poolside-Laguna-S-2.1":                    {"GLM-4.5", "<think>"},
	"poolside-Laguna-XS-2.1":                   {"GLM-4.5", "<think>"},
	"poolside-Laguna-XS.2":                     {"GLM-4.5", "<think>"},
	"tencent-Hy3":                              {"Hunyuan 3", "<think:opensource>"},
	"unsloth-Apriel-1.5":                       {"Apriel, Hunyuan A13B, MiniMax-M1", "Here are my reasoning steps:"},
	"unsloth-mistral-Devstral-Small-2507":      {"Mistral Small 3.2, Ministral 3, Devstral", ""},
	"upstage-Solar-Open-100B":                  {"Solar", ""},
}

// Templates that are others' are not in the repository; AMKC_CHAT_TEMPLATES names a folder of them. Each is found to
// write in the form that it does, or in none.
func TestPublishedTemplates(t *testing.T) {
	folder := os.Getenv("AMKC_CHAT_TEMPLATES")
	if folder == "" {
		t.Skip("AMKC_CHAT_TEMPLATES names no folder of templates")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jinja"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		tokens := &jinja.Dict{}
		tokens.Set("bos_token", "<s>")
		tokens.Set("eos_token", "</s>")
		name := strings.TrimSuffix(filepath.Base(path), ".jinja")
		calls, thoughts := Of(chat.New(map[string]string{"default": string(source)}, tokens)).Names()
		want, listed := published[name]
		if !listed {
			t.Logf("%s is not listed: calls %q, thoughts %q", name, calls, thoughts)
			continue
		}
		require.Equal(t, want, [2]string{calls, thoughts}, name)
	}
}
