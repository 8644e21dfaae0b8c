package cli

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	builder "amkc/compiler"
	"amkc/ir"
	"amkc/runtime"
)

// The kernels of 2 and 4 GPUs of two SMs each, in one process: whatever the schedule, the machine finds nothing, all
// GPUs choose the same tokens, and logits are to the bit those of one GPU that adds up as many parts, in all forms of
// the ring and with tensor cores and without.
func TestRanksOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"model_type": "llama",
		"hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 64, "torch_dtype": "bfloat16",
		"tie_word_embeddings": false}`), 0o600))
	one := map[ir.DType][]byte{} // of one GPU
	for _, c := range []struct {
		dtype   ir.DType
		gpus    int
		tiling  map[string]map[string]int
		defines []string
	}{
		{ir.BF16, 1, nil, nil},
		{ir.BF16, 2, nil, nil},
		{ir.BF16, 4, nil, nil},
		{ir.BF16, 2, nil, []string{"-DAMK_BULK_COPY=0"}},
		{ir.BF16, 2, map[string]map[string]int{"loop": {"barrier": 1}},
			[]string{"-DAMK_BULK_COPY=0", "-DAMK_ASYNC_COPY=0"}},
		{ir.F32, 1, nil, nil},
		{ir.F32, 2, map[string]map[string]int{"loop": {"roll": 0}}, nil},
	} {
		what := fmt.Sprintf("%s %v, %d GPUs", c.dtype, c.defines, c.gpus)
		dir, input := emittedForGPUs(t, model, c.gpus, c.dtype, c.tiling)
		out := outputOnCPU(t, onCPUProgram(t, "ranks.cc", []string{dir}, c.defines...), bytes.NewReader(input))
		require.Len(t, out, 4*(4*256+4), what)
		if c.gpus == 1 {
			one[c.dtype] = out
		}
		require.Equal(t, one[c.dtype], out, what)
	}
}

// emittedForGPUs writes the CUDA sources of a model of made-up weights for GPUs of two SMs, and returns their
// directory and what ranks.cc reads.
func emittedForGPUs(t *testing.T, model string, gpus int, dtype ir.DType,
	tiling map[string]map[string]int) (dir string, input []byte) {
	t.Helper()
	target := *ir.FindTarget("h200")
	target.SMs = 2
	o := builder.Options{Model: model, RandomSeed: new(uint64), Target: &target, DType: &dtype, Ranks: gpus,
		Check: true}
	o.Config.Tiling = map[string]map[string]int{"gemv": {"parts": 4}, "attention": {"max_splits": 1}}
	maps.Copy(o.Config.Tiling, tiling)
	l, err := builder.RunPasses(o)
	require.NoError(t, err)
	defer l.Close()
	files, err := codegen.CUDA(l.Program)
	require.NoError(t, err)
	maps.Copy(files, runtime.DeviceSources())
	dir = t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	schedules := 4
	if os.Getenv("AMKC_LONG") != "" {
		schedules = 400
	}
	for _, n := range []int{schedules, 3, 141, 59, 26} {
		input = binary.LittleEndian.AppendUint32(input, uint32(n))
	}
	for rank := range gpus {
		places, size := ir.WeightArena(l.Program)
		packed := make([]byte, size)
		for _, pl := range places {
			var out bytes.Buffer
			own := l.Program.Buffers[pl.Buffer].OfRank(rank)
			require.NoError(t, l.Weights.Pack(&out, &own, pl.Index))
			copy(packed[pl.Offset:], out.Bytes())
		}
		input = append(input, packed...)
	}
	return dir, input
}
