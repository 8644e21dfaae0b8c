package kernel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/format"
)

// Slabs of chains of a quarter are four quads of a warp; of two quarters they are about equal, and at most five.
func TestSlabs(t *testing.T) {
	bf16, int4 := format.Find("tile8x32", "BF16"), format.Find("tile8x128.g128.BF16", "I4")
	for _, c := range []struct {
		cut          Cut
		slabs, quads int
	}{
		{Cut{bf16, 1024, 16384, 4, 1, 1}, 1, 2},
		{Cut{bf16, 3072, 16384, 4, 1, 1}, 2, 4},
		{Cut{bf16, 14336, 16384, 8, 1, 1}, 4, 4},
		{Cut{bf16, 2048, 16384, 8, 2, 1}, 1, 2},
		{Cut{bf16, 3072, 16384, 4, 2, 1}, 2, 4},
		{Cut{bf16, 4096, 16384, 8, 2, 1}, 1, 4},
		{Cut{bf16, 5120, 16384, 8, 2, 1}, 1, 5},
		{Cut{bf16, 6144, 16384, 8, 2, 1}, 2, 3},
		{Cut{bf16, 8192, 16384, 8, 2, 1}, 2, 4},
		{Cut{bf16, 14336, 16384, 8, 2, 1}, 3, 5},
		{Cut{bf16, 14336, 4096, 8, 2, 1}, 12, 5},
		{Cut{bf16, 18944, 16384, 8, 2, 1}, 4, 5},
		{Cut{bf16, 14336, 131072, 8, 2, 1}, 2, 8},
		{Cut{int4, 14336, 16896, 8, 2, 1}, 4, 4},
	} {
		cut := &c.cut
		t.Run(fmt.Sprintln(cut.Matrix.DType(), cut.Columns, cut.Chunk, cut.Warps, cut.Chains), func(t *testing.T) {
			require.Equal(t, c.slabs, cut.Slabs())
			require.Equal(t, c.quads, cut.SlabQuads())
			require.LessOrEqual(t, (c.slabs-1)*c.quads, cut.Quads())
		})
	}
}

// Matrices share a chunk where a slot has room for several tiles, and these are of one batch of a warp's quads.
func TestChunkMatrices(t *testing.T) {
	bf16, int4 := format.Find("tile8x32", "BF16"), format.Find("tile8x128.g128.BF16", "I4")
	for _, c := range []struct {
		cut  Cut
		want int
	}{
		{Cut{int4, 768, 8960, 8, 1, 8}, 2},   // Qwen3-30B-A3B: tiles of 3 KB
		{Cut{int4, 768, 16384, 8, 1, 8}, 4},  // with room for five
		{Cut{int4, 768, 16384, 8, 1, 6}, 2},  // six in groups of equal size
		{Cut{int4, 768, 16384, 8, 1, 5}, 1},  // five
		{Cut{int4, 1408, 16384, 8, 1, 8}, 2}, // two quads of a warp
		{Cut{int4, 2880, 16384, 8, 1, 4}, 1}, // three
		{Cut{bf16, 768, 16384, 8, 1, 8}, 1},  // 12 KB
		{Cut{bf16, 768, 24576, 8, 1, 8}, 2},
		{Cut{int4, 768, 8960, 8, 1, 1}, 1},
	} {
		require.Equal(t, c.want, c.cut.ChunkMatrices(), "%d columns, chunks of %d, %d matrices", c.cut.Columns,
			c.cut.Chunk, c.cut.Sums)
	}
}
