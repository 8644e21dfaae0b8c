package cost

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/format"
)

// TestIntegers: what a warp takes for the quads of a tile is so much for each, and so much for each batch; with an
// offset it takes longer to make digits.
func TestIntegers(t *testing.T) {
	r := &run{machine: &machine{formats: FormatCalibration{VectorQuad: 10, ProductQuad: 3, ProductBatch: 7}}}
	require.Equal(t, 4*3+7.0, r.integers(&task{quads: 4, batches: 1}))
	require.Equal(t, 4*3+4*7.0, r.integers(&task{quads: 4, batches: 4}))
	require.Equal(t, 20.0, r.digits(&task{quads: 2}))
	require.Equal(t, 2*(10.0+offsetCycles), r.digits(&task{quads: 2, offset: true}))
	for _, c := range []struct {
		layout, dtype string
		want          bool
	}{{"tile8x128.g128.BF16", "I4", true}, {"tile8x128.g128.BF16", "I8", false},
		{"tile8x128.g128.BF16.zeros", "I8", true}, {"tile8x128.g128.BF16", "F8E4M3", false},
		{"tile8x32", "BF16", false}} {
		f := format.Find(c.layout, c.dtype)
		require.NotNil(t, f, c.layout)
		require.Equal(t, c.want, format.HasOffset(f), "%s of %s", c.layout, c.dtype)
	}
	require.False(t, format.HasOffset(nil))
}

// TestRoundsOfTile: without tensor cores eight warps share the blocks of each chunk separately.
func TestRoundsOfTile(t *testing.T) {
	fp32 := format.Find("tile8x32", "F32").Geometry()
	require.Equal(t, 1024, fp32.BlockBytes)
	for columns, want := range map[int]int{32: 1, 256: 1, 288: 2, 512: 2, 576: 3, 2048: 8} {
		require.Equal(t, want, roundsOfTile(fp32, columns, 16384), "%d columns", columns)
	}
	require.Equal(t, 9, roundsOfTile(fp32, 576, 2048), "chunks of two blocks")
	int8 := format.Find("tile8x128.g128.BF16", "I8").Geometry()
	require.Equal(t, 4, roundsOfTile(int8, 1024, 16640), "a block is 128 columns")
}

// TestCacheRows: on the ordinary units a warp takes longer for a block, and for each head of its group.
func TestCacheRows(t *testing.T) {
	formats := FormatCalibration{PlainHead: 100}
	plain, tensor := &run{machine: &machine{formats: formats}}, &run{machine: &machine{formats: formats, tensor: true}}
	unit := &task{blocks: 9, fragments: 4, heads: 3}
	require.Equal(t, 2*100*4*3.0, plain.cacheRows(unit))
	require.InDelta(t, 1.5*(roundCycles+4*fragmentCycles), tensor.cacheRows(unit), 1e-9)
}
