package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/passes"
)

// What the kernel makes of columns that are cut into eight parts has the same bits if 2, 4 or 8 GPUs multiply shares of
// the columns and add up what they have in pairs: in parts of one chunk and of several, with tensor cores and without.
// Sums without parts have other bits. Of integers, a warp has one, two or three quads of a part: those of one part in
// registers, and those of eight in shared memory.
func TestPartsOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const rows, counts = 52, 4
	for _, c := range []struct {
		dtype, weights string
		chunk, widest  int // of the model, whose longest vector has room for what is multiplied
		columns        []int
		defines        []string
	}{
		{"bf16", "", 16384, 14336, []int{1024, 14336}, nil},
		{"fp32", "", 16384, 14336, []int{1024, 14336}, nil},
		{"bf16", "int4:g32:sym", 16 * 576, 24576, []int{1024, 14336, 18432},
			[]string{"-DINTEGERS=kInt4", "-DZEROS=false"}},
		{"fp16", "int8:g32:asym", 16 * 1120, 24576, []int{1024, 14336, 18432},
			[]string{"-DINTEGERS=kInt8", "-DZEROS=true"}},
		{"fp32", "int4:g32:asym", 16384, 18432, []int{18432}, []string{"-DINTEGERS=kInt4", "-DZEROS=true"}},
	} {
		model := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), fmt.Appendf(nil, `{"model_type": "llama",
			"hidden_size": 64, "intermediate_size": %d, "num_hidden_layers": 1, "num_attention_heads": 1,
			"vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`, c.widest), 0o600))
		o := builder.Options{Model: model, RandomSeed: new(uint64)}
		o.Config.Tiling = map[string]map[string]int{"ring": {"chunk_bytes": c.chunk}}
		if c.weights != "" {
			var err error
			o.Formats, err = passes.ParseWeightFormats(c.weights)
			require.NoError(t, err)
		}
		dir := emittedAs(t, c.dtype, "", o)
		for _, columns := range c.columns {
			what := fmt.Sprintf("%s %s, %d columns", c.dtype, c.weights, columns)
			out := runOnCPU(t, "parts.cc", []string{dir}, append(c.defines, fmt.Sprint("-DCOLUMNS=", columns))...)
			require.Len(t, out, (1+counts)*rows*4, what)
			one, shared := out[:rows*4], out[rows*4:]
			for i := range counts {
				require.Equal(t, shared[:rows*4], shared[i*rows*4:(i+1)*rows*4], "%s, %d GPUs", what, 1<<i)
			}
			require.NotEqual(t, one, shared[:rows*4], what)
		}
	}
}
