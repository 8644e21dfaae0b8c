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
