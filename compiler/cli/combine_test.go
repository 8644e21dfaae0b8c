package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
)

// Splits are joined as the definition says, by a step and by a pass over a prompt, whose results are the same to the
// bit: where a warp has a lane for each, and where lanes have several, though not all of them as many. AMKC_LONG asks
// for more numbers of splits.
func TestCombineOfSplits(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	splits := []int{3, 33, 128}
	if os.Getenv("AMKC_LONG") != "" {
		splits = append(splits, 2, 16, 17, 32, 48, 64, 65, 96, 127)
	}
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"model_type": "llama",
		"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 48, "hidden_size": 64, "intermediate_size": 64,
		"num_hidden_layers": 1, "vocab_size": 64, "max_position_embeddings": 160}`), 0o600))
	for _, n := range splits {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var config ir.ScheduleConfig
			knobs.MaxSplits.Set(&config, n)
			knobs.SplitFrom.Set(&config, 64)
			knobs.PromptTokens.Set(&config, 64)
			dir := emittedAs(t, "bf16", "", builder.Options{Model: model, RandomSeed: new(uint64), Config: config})
			stages := structsWith(t, dir, "kWidth")
			require.Len(t, stages, 1)
			define := []string{"-DAMK_TENSOR_CORES=1", "-DCOMBINE=" + stages[0]}
			step := runOnCPU(t, "combine.cc", []string{dir}, define...)
			require.Len(t, step, 2*4*4*48, "two tokens of four heads")
			prompt := runOnCPU(t, "combine.cc", []string{dir}, append(define, "-DAMK_PROMPT=1")...)
			require.True(t, bytes.Equal(step, prompt))
		})
	}
}
