package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

func TestScratch(t *testing.T) {
	llama := ir.Model{DType: ir.BF16, Hidden: 2048, Intermediate: 8192, Heads: 32, KVHeads: 8, HeadDim: 64}
	columns := []int{2048, 2048, 8192}
	with, without := ir.ScratchOf(&llama, true, 16, columns...), ir.ScratchOf(&llama, false, 16, columns...)
	require.Equal(t, ir.Scratch{Rows: 16, HeadDim: 64, PaddedHead: 64, WarpHeads: 4, Unit: 2*4*80 + 64*64, Vector: 4}, with)
	require.Equal(t, ir.Scratch{Rows: 16, HeadDim: 64, PaddedHead: 64, WarpHeads: 4, Unit: 16, Vector: 8192}, without)
	require.Equal(t, 12, with.Slots(232448, 16384))
	require.Equal(t, 0, without.Slots(65536, 16384))

	// A stage whose columns are no whole quarters keeps its activations whatever the others do.
	odd := ir.ScratchOf(&llama, true, 3, 2048, 2050)
	require.Equal(t, 2080, odd.Vector)
	require.Equal(t, 8, odd.Rows)
	require.Equal(t, with.Bytes(12)+4*(2080-4)-4*(16-8), odd.Bytes(12))
	require.Equal(t, 16, with.Bytes(13)-with.Bytes(12), "a slot has two barriers")
}

func TestRunsOnTensorCores(t *testing.T) {
	h200, t4 := ir.FindTarget("h200"), ir.FindTarget("t4")
	require.True(t, h200.RunsOnTensorCores(ir.BF16))
	require.False(t, h200.RunsOnTensorCores(ir.F32))
	require.False(t, t4.RunsOnTensorCores(ir.F16))
}
