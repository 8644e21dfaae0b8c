package compiler

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/readback"
	"amkc/validate"
)

// forGPUs lowers a model for several GPUs.
func forGPUs(t *testing.T, model string, gpus int, dtype ir.DType, tiling map[string]map[string]int) *Scheduled {
	t.Helper()
	l, err := RunPasses(Options{Model: filepath.Join(root, "models", model), Name: filepath.Base(model),
		Target: ir.FindTarget("h200"), DType: &dtype, MaxSeq: 64, Ranks: gpus, Check: true,
		Config: ir.ScheduleConfig{Tiling: tiling}, RandomSeed: new(uint64)})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// The sources for several GPUs say what their program does: what is read back out of them is the program, its words for
// all ranks and its counters of all ranks included, and is proved. All ranks have one text, which nothing but the
// arguments of a launch tells apart.
func TestRanksAreReadBack(t *testing.T) {
	for _, c := range []struct {
		model  string
		gpus   []int
		dtype  ir.DType
		tiling map[string]map[string]int
	}{
		{"zoo/llama-gqa", []int{2, 4}, ir.BF16, nil},
		{"zoo/llama-gqa", []int{2}, ir.F32, nil},
		{"zoo/llama-gqa", []int{2}, ir.F16, map[string]map[string]int{
			"attention": {"split_from": 16, "max_splits": 4}, "loop": {"barrier": 1}}},
		{"zoo/llama-gqa", []int{2}, ir.BF16, map[string]map[string]int{"loop": {"roll": 0}}},
		{"../configs/llama-2048h-4l", []int{2, 4}, ir.BF16, map[string]map[string]int{"gemv": {"parts": 8}}},
		{"zoo/qwen2-bias", []int{2}, ir.BF16, nil},
		{"zoo/qwen3-qknorm", []int{2}, ir.BF16, nil},
	} {
		for _, n := range c.gpus {
			t.Run(fmt.Sprintf("%s %s %d %v", c.model, c.dtype, n, c.tiling), func(t *testing.T) {
				l := forGPUs(t, c.model, n, c.dtype, c.tiling)
				files, err := codegen.CUDA(l.Program)
				require.NoError(t, err)
				want, clash := codegen.Conventional(l.Program)
				require.Nil(t, clash)
				got, diags := readback.Program(files)
				require.Empty(t, diags)
				require.Empty(t, readback.Compare(got, want))
				require.True(t, validate.Program(got).OK, "%v", validate.Program(got).Diags)
			})
		}
	}
}

// What the kernel does not do on several GPUs is refused by name.
func TestRanksThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		model  string
		tiling map[string]map[string]int
		edit   func(p *ir.Program)
		want   string
	}{
		{"zoo/llama-gqa", map[string]map[string]int{"exchange": {"flagged": 0}}, nil,
			"program: error: is for 2 GPUs, and counters announce its vectors; want tiling.exchange.flagged 1, for " +
				"what GPUs push to each other carries its epoch [AMK4003]"},
		{"zoo/llama-mha-tied-bf16", nil, nil,
			"program: error: is for 2 GPUs, and the matrix of its head is the embedding table, which each has whole; " +
				"want one of its own [AMK4003]"},
		{"zoo/llama-gqa", nil, func(p *ir.Program) { p.Model.Vocab -= 2 },
			"program: error: is for 2 GPUs, and each has a share of 510 tokens; want an even number for each, which " +
				"draws take two by two [AMK4003]"},
		{"zoo/llama-gqa", nil, func(p *ir.Program) { p.Pass = ir.PassOf(1, 2) }, "its pass of 2 tokens"},
		{"zoo/llama-gqa", nil, func(p *ir.Program) {
			for i := range p.Pages {
				if p.Pages[i].Space == ir.PeerScratch {
					p.Pages[i].Layout.Copies = 2
				}
			}
			for i := range p.Buffers {
				if p.Buffers[i].Space == ir.PeerScratch {
					p.Buffers[i].Layout.Copies = 2
				}
			}
		}, "has 2 copies of what GPUs push; want one on each [AMK4003]"},
	} {
		l := forGPUs(t, c.model, 2, ir.BF16, c.tiling)
		if c.edit != nil {
			c.edit(l.Program)
		}
		_, err := codegen.CUDA(l.Program)
		require.ErrorContains(t, err, c.want)
	}
}
