package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
)

// Splits are joined as the definition says: where a lane has all of them, and where several lanes have some, though not
// all of them as many. AMKC_LONG asks for more numbers of splits.
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
			dir := emittedAs(t, "bf16", "", builder.Options{Model: model, RandomSeed: new(uint64), Config: config})
			stages := structsWith(t, dir, "kWidth")
			require.Len(t, stages, 1)
			runOnCPU(t, "combine.cc", []string{dir}, "-DAMK_TENSOR_CORES=1", "-DCOMBINE="+stages[0])
		})
	}
}
