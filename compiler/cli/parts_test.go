package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
)

// What the kernel makes of columns that are cut into eight parts has the same bits if 2, 4 or 8 GPUs multiply shares of
// the columns and add up what they have in pairs: in parts of one chunk and of several, with tensor cores and without.
// Sums without parts have other bits.
func TestPartsOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const rows, counts = 52, 4
	model := t.TempDir() // whose longest vector is multiplied: without tensor cores the kernel has room for no other
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"model_type": "llama",
		"hidden_size": 64, "intermediate_size": 14336, "num_hidden_layers": 1, "num_attention_heads": 1,
		"vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`), 0o600))
	for _, dtype := range []string{"bf16", "fp32"} {
		dir := emittedAs(t, dtype, "", builder.Options{Model: model, RandomSeed: new(uint64)})
		for _, columns := range []int{1024, 14336} {
			out := runOnCPU(t, "parts.cc", []string{dir}, fmt.Sprint("-DCOLUMNS=", columns))
			require.Len(t, out, (1+counts)*rows*4)
			one, shared := out[:rows*4], out[rows*4:]
			for i := range counts {
				require.Equal(t, shared[:rows*4], shared[i*rows*4:(i+1)*rows*4], "%s, %d columns, %d GPUs", dtype,
					columns, 1<<i)
			}
			require.NotEqual(t, one, shared[:rows*4], "%s, %d columns", dtype, columns)
		}
	}
}
