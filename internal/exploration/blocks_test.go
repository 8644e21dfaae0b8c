package exploration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
)

// storedForms are weights that a config says are stored so, and that --weights does not know: those of a GGUF file, and
// NVFP4.
var storedForms = map[string]func(config map[string]any) map[string]any{
	"blocks": func(config map[string]any) map[string]any {
		return map[string]any{"quant_method": "gguf", "types": typesOf(config)}
	},
	"nvfp4": func(map[string]any) map[string]any {
		return map[string]any{"quant_method": "modelopt", "quant_algo": "NVFP4"}
	},
}

// typesOf are the types of the matrices of a llama: of groups of 32 and 16 columns, with minima and without, with
// scales of scales and without, and in qkv of the first layer a format that has the values of two types.
func typesOf(config map[string]any) map[string]string {
	types := map[string]string{"lm_head": "Q4_1"}
	for i := range config["num_hidden_layers"].(int) {
		for module, of := range map[string][2]string{"self_attn.q_proj": {"Q4_K", "Q5_0"},
			"self_attn.k_proj": {"Q4_K", "Q5_0"}, "self_attn.v_proj": {"Q6_K", "Q5_0"},
			"self_attn.o_proj": {"Q5_K", "Q2_K"}, "mlp.gate_proj": {"Q4_K", "Q5_1"}, "mlp.up_proj": {"Q4_K", "Q5_1"},
			"mlp.down_proj": {"Q6_K", "Q3_K"}} {
			types[fmt.Sprintf("model.layers.%d.%s", i, module)] = of[i%2]
		}
	}
	return types
}

// Matrices in blocks of GGUF files, and in NVFP4, give the same bits in steps, passes of rows and of sequences, and
// prompts, which multiply them in code of their own, and in steps what the reference VM says.
func TestBlocks(t *testing.T) {
	perJob := inGate(schedules, 1)
	if perJob == 0 {
		t.Skip("make explore runs it")
	}
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	plain := Builds()[0]
	require.Equal(t, "llama", plain["model"])
	var builds []Build
	for _, edits := range []Build{{"weights": "blocks", "rows": "4", "ends": "drawn"},
		{"weights": "blocks", "arch": "sm_80", "dtype": "fp16", "cache": "fp16", "sequences": "2x2"},
		{"weights": "nvfp4", "rows": "4"}} {
		b := maps.Clone(plain)
		maps.Copy(b, edits)
		builds = append(builds, b)
	}
	o := Options{Root: root, Cache: cache, Dir: t.TempDir(), Schedules: perJob, Command: []string{exe},
		Wanted: func(int, Build) bool { return true }}
	rows, err := Run(t.Context(), o, builds)
	require.NoError(t, err)
	for i, r := range rows {
		for _, f := range r.Findings {
			t.Errorf("%s: %s", r.Build.Name(), f.Diagnostic())
		}
		require.Subset(t, r.Jobs, [][]string{{"ends", "rows4", "prompt-20"},
			{"reference", "sequences2rows2", "prompt-9"}, {"stops", "rows4", "prompt-3"}}[i])
		fmt.Printf("%s: %d schedules, %d values\n", r.Build.Name(), r.Schedules, r.Values)
	}
	_, err = os.Stat(filepath.Join(o.Dir, "01"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
