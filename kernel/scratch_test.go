package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/format"
)

func TestScratch(t *testing.T) {
	llama := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 2048, Intermediate: 8192, Heads: 32, KVHeads: 8, HeadDim: 64}
	columns := []int{2048, 2048, 8192}
	kept, all := Kept{Rows: 16}, Kept{Rows: 16, Rotations: 1, Digits: MinDigits}
	with, without := ScratchOf(&llama, true, kept, columns...), ScratchOf(&llama, false, kept, columns...)
	require.Equal(t, Scratch{Kept: all, HeadDim: 64, PaddedHead: 64, WarpHeads: 4, OwnScores: 4,
		Unit: 2*4*80 + 64*64, Vector: 4, Activation: 4}, with)
	require.Equal(t, Scratch{Kept: all, HeadDim: 64, PaddedHead: 64, WarpHeads: 4, OwnScores: 4, Unit: 16,
		Vector: 8192, Activation: 4}, without)
	require.Equal(t, 12, with.Slots(232448, 16384))
	require.Equal(t, 0, without.Slots(65536, 16384))

	// A stage whose columns are not whole quarters keeps its activations whatever the others do.
	odd := ScratchOf(&llama, true, Kept{Rows: 3}, 2048, 2050)
	require.Equal(t, 2080, odd.Vector)
	require.Equal(t, 8, odd.Rows)
	require.Equal(t, with.Bytes(12)+4*(2080-4)-4*(16-8), odd.Bytes(12))
	require.Equal(t, 16, with.Bytes(13)-with.Bytes(12), "a slot has two barriers")

	for group, want := range map[int][3]int{1: {2, 2, 8}, 5: {6, 6, 8}, 8: {8, 8, 8}, 9: {8, 16, 16}, 64: {8, 64, 64},
		65: {16, 128, 64}, 71: {16, 128, 64}, 128: {16, 128, 64}} {
		falcon := ir.Model{DTypes: ir.Uniform(ir.BF16), Heads: group, KVHeads: 1, HeadDim: 64}
		s, rows := ScratchOf(&falcon, true, Kept{}, columns...), ScratchOf(&falcon, true, Kept{Pass: ir.Pass{Rows: 2}})
		require.Equal(t, want, [3]int{s.WarpHeads, s.OwnScores, rows.OwnScores}, "%d heads", group)
		s = ScratchOf(&falcon, false, Kept{}, columns...)
		require.Equal(t, [2]int{group, group}, [2]int{s.WarpHeads, s.OwnScores}, "%d heads without tensor cores", group)
	}

	two := ScratchOf(&llama, true, Kept{Rows: 16, Rotations: 2}, columns...)
	require.Equal(t, 4*64, two.Bytes(12)-with.Bytes(12), "cos and sin of 32 pairs")
}

// Vectors in fixed point lie where attention keeps what it has read and its results.
func TestScratchOfDigits(t *testing.T) {
	llama := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8,
		HeadDim: 128}
	columns := []int{4096, 4096, 14336}
	const h200, l4, int4, int8 = 232448, 101376, 32 * 528, 16 * 1040
	of := func(dtype string) format.Format { return format.Find("tile8x128.g128.BF16", dtype) }
	digitBytes := func(f format.Format, columns, sums, chunk, warps int) int {
		return (&Cut{Matrix: f, Columns: columns, Chunk: chunk, Warps: warps, Sums: sums}).DigitBytes()
	}
	digits := digitBytes(of("I4"), 14336, 1, int4, 8)
	require.Equal(t, 8*14*(128*2+32), digits)
	require.Equal(t, 8*14*(128*2+48), digitBytes(format.Find("tile8x128.g16.F16.steps", "I6"), 14336, 1, 16*848, 8),
		"sums of halves of quarters")
	require.Equal(t, digits, digitBytes(of("I8"), 14336, 1, int8, 8), "batches of two")
	require.Zero(t, digitBytes(of("I4"), 4096, 1, int4, 8), "four quads are in registers")
	require.Zero(t, digitBytes(of("I8"), 14336, 1, 8192, 8), "a chunk has no two quads for each warp")
	require.Zero(t, digitBytes(of("I4"), 14336, 1, 28*528, 4), "seven quads of a chunk are not batches of four")
	require.Zero(t, digitBytes(of("I4"), 768, 4, int4, 8), "four matrices of a quad are in registers")
	require.Equal(t, 8*8*(128*2+32), digitBytes(of("I4"), 768, 8, int4, 8), "batches are of four matrices")
	require.Equal(t, 8*28*(128*2+32), digitBytes(of("I4"), 14336, 2, int4, 8), "batches are of a matrix")
	require.Equal(t, 8*12*(128*2+32), digitBytes(of("I4"), 2880, 4, 32*528, 8), "three quads of a matrix")
	require.Zero(t, digitBytes(of("I8"), 2880, 4, 8*1040, 8), "a chunk has one quad for each warp")
	for chunk, want := range map[int]int{8448: 1, int8: 2, int4: 2, 32 * 1040: 4, 64 * 1040: 4} {
		cut := Cut{Matrix: of("I8"), Columns: 4096, Chunk: chunk, Warps: 8}
		require.Equal(t, want, cut.batch(), "int8 in chunks of %d bytes", chunk)
	}
	for _, c := range []struct{ columns, sums, batch, batches int }{
		{1024, 1, 1, 1}, // a warp has no more
		{768, 8, 4, 2},
		{768, 6, 4, 2},
		{2048, 2, 4, 1},
		{2880, 4, 3, 4},
		{14336, 2, 4, 8},
	} {
		cut := Cut{Matrix: of("I4"), Columns: c.columns, Chunk: int4, Warps: 8, Sums: c.sums}
		require.Equal(t, [2]int{c.batch, c.batches}, [2]int{cut.batch(), cut.Batches()}, "%d sums of %d columns",
			c.sums, c.columns)
	}

	kept := Kept{Digits: digits}
	without, with := ScratchOf(&llama, true, Kept{}, columns...), ScratchOf(&llama, true, kept, columns...)
	require.Equal(t, digits-without.AttentionBytes(), with.Bytes(11)-without.Bytes(11))
	require.Equal(t, with, ScratchIn(h200, int4, &llama, true, kept, columns...))
	require.Equal(t, without, ScratchIn(l4, int4, &llama, true, kept, columns...), "the ring would be short")
	require.Equal(t, MinDigits, ScratchOf(&llama, false, kept, columns...).Digits)
}

// In a pass of several tokens, sums of quantised matrices are there from slab to slab: those of a warp are four for
// each row and token of the tiles that an SM finishes at once.
func TestScratchOfChains(t *testing.T) {
	llama := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8,
		HeadDim: 128}
	f := format.Find("tile8x128.g128.BF16", "I4").(format.Quantised)
	const h200, l4, int4 = 232448, 101376, 32 * 528
	rows := func(n int) *ir.Dist { return &ir.Dist{Kind: ir.Spread, Extent: n, Grain: 8, SMs: 132} }
	require.Zero(t, ChainBytes(f, rows(4096), 14336, int4, 8, 1), "one token has no slabs")
	require.Zero(t, ChainBytes(f, rows(6144), 4096, int4, 8, 8), "one slab")
	chains := ChainBytes(f, rows(4096), 14336, int4, 8, 8)
	require.Equal(t, 8*4*8*8*4*4, chains, "four tiles")
	require.Equal(t, chains, ChainBytes(f, rows(4096), 14336, int4, 8, 5), "the columns of an mma are four tokens")
	require.Equal(t, chains/2, ChainBytes(f, rows(4096), 14336, int4, 8, 2))
	require.Equal(t, 2*chains, ChainBytes(f, rows(1<<20), 14336, int4, 8, 8), "eight tiles are finished at once")

	kept := Kept{Rows: 32, Pass: ir.Pass{Rows: 8}}
	without := ScratchIn(h200, int4, &llama, true, kept)
	require.Equal(t, 8*4*144*2+2*32*128*2, without.Unit)
	kept.Chains = without.Unit
	require.Equal(t, without.Bytes(9), bytesOf(ScratchIn(h200, int4, &llama, true, kept)), "instead of a unit")
	kept.Chains = chains
	require.Equal(t, without.Bytes(9)+chains-without.Unit, bytesOf(ScratchIn(h200, int4, &llama, true, kept)))

	// Vectors of experts are in shared memory where the ring keeps its length with them.
	experts := kept
	experts.Digits = 2 * chains
	require.Equal(t, without.Bytes(9)+2*chains-without.Unit, bytesOf(ScratchIn(h200, int4, &llama, true, experts)))
	require.Equal(t, ScratchIn(l4, int4, &llama, true, kept), ScratchIn(l4, int4, &llama, true, experts))

	llama.Cache = ir.I8
	integers := ScratchIn(h200, int4, &llama, true, kept)
	require.Equal(t, 8*4*144*2+8*2*128*2+2*(32*128+64), integers.Unit, "k and v of each token before they are rounded")
}

func bytesOf(s Scratch) int { return s.Bytes(9) }

// A compact scratch holds what stages need one after the other, and is there where the other leaves no room for a ring.
func TestCompactScratch(t *testing.T) {
	llama := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8,
		HeadDim: 128}
	columns := []int{4096, 4096, 14336}
	const t4, h200, chunk = 65536, 232448, 8192
	s := ScratchIn(t4, chunk, &llama, false, Kept{Rows: 104}, columns...)
	require.Equal(t, Scratch{Compact: true, Kept: Kept{Rows: 104, Rotations: 1,
		Digits: MinDigits},
		HeadDim: 128, PaddedHead: 128,
		WarpHeads: 4, OwnScores: 4, Unit: 4 * 6 * 128, Vector: 14336, Activation: 2}, s)
	require.Equal(t, 3, s.Slots(t4, chunk))
	plain := ScratchOf(&llama, false, Kept{Rows: 104}, columns...)
	require.Negative(t, plain.Slots(t4, chunk))
	require.Equal(t, 4*14336+16384-(2*14336+4096)+16+4*(8*4*135+4), plain.Bytes(8)-s.Bytes(8),
		"floats, four sums per row, and results of attention")
	require.Equal(t, ScratchOf(&llama, true, Kept{Rows: 32}, columns...),
		ScratchIn(h200, chunk, &llama, true, Kept{Rows: 32}, columns...))

	// With tensor cores it is attention that takes the room: what matrix stages keep is in its place.
	wide := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 3072, Intermediate: 9216, Heads: 12, KVHeads: 4, HeadDim: 256}
	s = ScratchIn(101376, 16384, &wide, true, Kept{Rows: 56}, 3072, 9216)
	require.True(t, s.Compact)
	require.Equal(t, 2, s.Slots(101376, 16384))
	require.Equal(t, 2*3*272+64*256+4*(8*4*263+4), s.AttentionBytes())

	// Columns that are not whole quarters are kept with tensor cores too.
	s = CompactScratchOf(&wide, true, Kept{Rows: 56}, 3072, 9218)
	require.Equal(t, 9248, s.Vector)
}

func TestRunsOnTensorCores(t *testing.T) {
	h200, t4 := ir.FindTarget("h200"), ir.FindTarget("t4")
	require.True(t, h200.RunsOnTensorCores(ir.BF16))
	require.False(t, h200.RunsOnTensorCores(ir.F32))
	require.False(t, t4.RunsOnTensorCores(ir.F16))
}
