package explore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/ir"
)

// shared is the config of a model of which each of four GPUs has a part.
const shared = `{"model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 64,
"torch_dtype": "bfloat16", "tie_word_embeddings": false}`

// forGPUs compiles a small model for GPUs of two SMs, which add up as many parts whatever their number.
func forGPUs(t *testing.T, gpus int, dtype ir.DType) string {
	t.Helper()
	model, dir := t.TempDir(), filepath.Join(t.TempDir(), "build")
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(shared), 0o600))
	o := compiler.Options{Model: model, Name: "shared", Target: ir.ArchTarget(90, 2), DType: &dtype, Ranks: gpus,
		RandomSeed: new(uint64), MaxSeq: 64}
	o.Config.Tiling = map[string]map[string]int{"gemv": {"parts": 4}, "attention": {"max_splits": 1},
		"prompt": {"tokens": 0}}
	_, err := compiler.Compile(t.Context(), compiler.BuildOptions{Options: o, OutDir: dir, NoBuild: true,
		NoLauncher: true})
	require.NoError(t, err)
	return dir
}

// Builds for 2 and 4 GPUs of two SMs, launched by package host as on GPUs: nothing goes wrong under any schedule, and
// logits, last hidden states and tokens are to the bit those of one GPU. With AMKC_LONG, in all jobs.
func TestGPUs(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	cache, schedules := t.TempDir(), 2
	one := map[string]string{} // digests of what one GPU makes
	if os.Getenv("AMKC_LONG") != "" {
		schedules = 20
	}
	compared := []string{"text", "steps", "launch"}
	for _, c := range []struct {
		dtype ir.DType
		gpus  int
		jobs  []string
	}{
		{ir.BF16, 1, compared},
		{ir.BF16, 2, append([]string{"stops", "abort", "drawings", "ends"}, compared...)},
		{ir.BF16, 4, compared},
		{ir.F32, 1, compared},
		{ir.F32, 2, compared},
	} {
		if os.Getenv("AMKC_LONG") != "" && c.gpus > 1 {
			c.jobs = nil
		}
		o := Options{Build: forGPUs(t, c.gpus, c.dtype), Cache: cache, Schedules: schedules, Seed: 1, Workers: 2,
			Command: []string{exe}, Jobs: c.jobs, Called: true}
		var values known
		r, err := with(context.Background(), o, func(e *explorer) error {
			values = e.known
			return e.explore()
		})
		require.NoError(t, err)
		require.Empty(t, r.Findings, "%s on %d GPUs", c.dtype, c.gpus)
		if c.gpus == 1 {
			one = map[string]string{}
		}
		n := 0
		for name, v := range values {
			switch have, is := one[name]; {
			case !strings.HasPrefix(name, "shared "):
			case c.gpus == 1:
				one[name] = v.digest
			case is:
				require.Equal(t, have, v.digest, "%s: %s on %d GPUs", c.dtype, name, c.gpus)
				n++
			}
		}
		require.True(t, c.gpus == 1 || n == len(one) && n > 0, "%d of %d values", n, len(one))
	}
}
