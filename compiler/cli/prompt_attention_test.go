package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
)

// Attention of a pass over a prompt has the bits of steps, compiled for the CPU: with one split and several, with
// windows, heads of any size, and caches of 16 and of 8 bits; and where a pass has tokens of several variants. Texts
// begin within a block of the cache or with one, and are of more tokens than a warp takes. AMKC_LONG asks for all
// shapes with all caches.
func TestAttentionOfPrompts(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	shapes := map[string]string{"big": `"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 144,
		"model_type": "llama", "num_hidden_layers": 1`,
		// Windows in every other layer alone: these have splits, the first of which may have nothing to see.
		"windows": `"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 64, "model_type": "gemma2",
		"sliding_window": 27, "num_hidden_layers": 2`}
	// One warp has all blocks of a split: long shares, of which several blocks are taken at once, unless a score rises
	// far above those before, as it often does with a large multiplier.
	shapes["shares"] = `"num_attention_heads": 40, "num_key_value_heads": 1, "head_dim": 64, "model_type": "granite",
		"attention_multiplier": 2.0, "num_hidden_layers": 1`
	for name, shape := range attentionShapes {
		shapes[name] = shape + `, "num_hidden_layers": 1`
	}
	for name, shape := range shapes {
		for _, c := range []struct{ dtype, cache string }{{"bf16", ""}, {"bf16", "int8"}, {"fp16", "int8"}} {
			plain := name == "window" || name == "windows" || name == "wide" || name == "big" || name == "shares"
			if os.Getenv("AMKC_LONG") == "" && (c.cache == "") != plain {
				continue
			}
			t.Run(name+" "+c.dtype+" "+c.cache, func(t *testing.T) {
				model := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{`+shape+`,
					"hidden_size": 64, "intermediate_size": 64, "vocab_size": 64,
					"max_position_embeddings": 160, "torch_dtype": "bfloat16"}`), 0o600))
				var config ir.ScheduleConfig
				knobs.MaxSplits.Set(&config, 3)
				knobs.SplitFrom.Set(&config, 64)
				knobs.PromptTokens.Set(&config, 64)
				if name == "windows" { // shares of few rows
					knobs.ChunkBytes.Set(&config, 8448)
				}
				dir := emittedAs(t, c.dtype, c.cache, builder.Options{Model: model, RandomSeed: new(uint64),
					Config: config, Target: ir.ArchTarget(90, 4)})
				define := []string{"-DAMK_TENSOR_CORES=1", stagesDefine(t, dir)}
				if combines := structsWith(t, dir, "kWidth"); len(combines) > 0 {
					define = append(define, "-DCOMBINE="+combines[0])
				}
				samePrompts(t, dir, define)
				later := noteBefore(t, dir)
				require.Equal(t, len(define) > 2, len(later) > 0, "variants with splits stand for others without")
				if len(later) > 0 {
					samePrompts(t, dir, append(define, "-DSPANS", "-USTAGES", "-DSTAGES="+strings.Join(later, ",")))
				}
			})
		}
	}
}

// samePrompts compares prompts by mma and by wgmma with steps.
func samePrompts(t *testing.T, dir string, define []string) {
	steps := runOnCPU(t, "prompt_attention.cc", []string{dir}, append(define, "-DAMK_PROMPT=0")...)
	require.NotEmpty(t, steps)
	for _, wgmma := range []string{"0", "1"} {
		prompts := runOnCPU(t, "prompt_attention.cc", []string{dir},
			append(define, "-DAMK_PROMPT=1", "-DAMK_WGMMA="+wgmma)...)
		require.True(t, bytes.Equal(steps, prompts), "%v AMK_WGMMA=%s", define, wgmma)
	}
}

// noteBefore writes before.h, what a build's prompt.cu says of attention in place of that of other variants. It returns
// the stages that others are in place of.
func noteBefore(t *testing.T, dir string) (later []string) {
	prompt, err := os.ReadFile(filepath.Join(dir, "prompt.cu"))
	require.NoError(t, err)
	header := "namespace amk {\n"
	notes := regexp.MustCompile(`template <>\nstruct Before<(\w+)> (?s:.*?\n};\n)`)
	for _, m := range notes.FindAllSubmatch(prompt, -1) {
		header, later = header+string(m[0]), append(later, string(m[1]))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "before.h"), []byte(header+"}\n"), 0o600))
	return later
}
