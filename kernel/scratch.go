package kernel

import (
	"slices"

	"amkc/ir"
	"amkc/ir/format"
)

// A chunk of the stream, which fills a slot of the ring, has a multiple of ChunkStep bytes between these bounds. Where
// matrices are not quantised, and a quad of theirs has ChunkUnit bytes or twice as many, only multiples of that differ.
// A ring has MinSlots slots or more.
const (
	MinChunk  = 4096
	MaxChunk  = 65536
	ChunkStep = 256
	ChunkUnit = 2048
	MinSlots  = 2
)

// Warps is the number of warps of a block that compute.
const (
	Warps     = 8
	computing = 32 * Warps
)

// MaxQuads is the number of quads of a vector, of format.QuadColumns columns each, that a warp keeps in registers on
// tensor cores.
const MaxQuads = 32

// In fixed point, the vector of a stage stays in registers up to registerQuads quads per warp. More are kept in shared
// memory, digitQuadBytes each: two bytes per column, and a scale and a sum for each quarter, or a sum for each half of
// one if these are groups (digits.cuh). That is where a batch of quads ends with its chunk, and where the ring keeps
// digitSlots slots besides them.
const (
	registerQuads = 4
	batchQuads    = 4
	digitSlots    = 6
)

func digitQuadBytes(f format.Format) int {
	bytes := 2*format.QuadColumns + 4*8
	if format.InHalves(f) {
		bytes += 4 * 4
	}
	return bytes
}

// DigitBytes is the shared memory of a block for a vector in fixed point, which is used if there is room and warps
// share a tile. GemvShape of gemv_mma.cuh computes the same.
func (c *Cut) DigitBytes() int {
	quads, batch := c.sums()*c.Quads(), c.batch()
	if quads <= registerQuads || batch < 2 || c.chunks() > 1 && c.quadsOfChunk()%batch != 0 {
		return 0
	}
	return Warps * quads * digitQuadBytes(c.Matrix)
}

// ChainBytes is the shared memory of a block for the sums of a quantised matrix from slab to slab, in a pass of n
// tokens: four for each row of a tile and token, for all tiles that an SM finishes at once, as in gemm_digits.cuh. It
// is 0 if all columns are one slab, and in a pass of one token, which has no slabs.
func ChainBytes(f format.Quantised, d *ir.Dist, columns, chunk, warpsPerTile, tokens int) int {
	p := Cut{Matrix: f, Columns: columns, Chunk: chunk, Warps: warpsPerTile, Chains: 1}
	if tokens == 1 || p.Slabs() == 1 {
		return 0
	}
	g := f.Geometry()
	return Warps * tilesOfFlush(g, d) * roundUp(tokens, SetTokens) * g.Rows * 4 * 4
}

// tilesOfFlush is how many tiles of a matrix an SM finishes at once.
func tilesOfFlush(g format.Geometry, d *ir.Dist) int {
	return min(FlushTiles, ceil(ceil(d.Extent, d.Grain), d.SMs)*(d.Grain/g.Rows))
}

// PlainSlab is the shared memory of a block for a product without tensor cores in a pass of n tokens: a slab of columns
// of all vectors, with elements of the given size, and if there are several slabs, the sums of lanes from slab to slab,
// as in PlainSlabs of gemm_fma.cuh. One token has its whole vector there.
func PlainSlab(g format.Geometry, d *ir.Dist, columns, chunk, warpsPerTile, tokens, element int) int {
	if tokens == 1 {
		return 0
	}
	ofChunk := ChunkQuads(g, chunk, warpsPerTile) * format.QuadColumns
	slab := max(1, PlainSlabColumns/ofChunk) * ofChunk
	bytes := tokens * min(roundUp(columns, 32), slab) * element
	if columns > slab {
		bytes += Warps * 32 * tilesOfFlush(g, d) * tokens * 4
	}
	return bytes
}

// PlainSlabColumns is how many columns a slab of a product without tensor cores has, unless a chunk has more.
const PlainSlabColumns = 1024

const (
	FlushTiles = 8 // that an SM finishes at once
	SetTokens  = 4 // that share an mma
)

// MaxReplicated is the largest number of values of a replicated residual, or of the parts of a branch that is added to
// it, for which the threads of a block have bits, as counted by replicated.cuh.
func MaxReplicated(m *ir.Model) int {
	most := 32 * 32 * Warps
	if m.Activations.Bits() == 16 && m.Hidden%4 == 0 {
		most *= 4
	}
	return most
}

// ChunkQuads is the number of quads of a matrix in a chunk of n bytes: the same for each of the warps that share a
// tile, if there is one for each.
func ChunkQuads(g format.Geometry, chunk, warps int) int {
	quads := max(1, chunk/g.QuadBytes())
	if quads < warps {
		return quads
	}
	return quads / warps * warps
}

// QuadsPerWarp is the number of quads of n columns per warp, if warps share a tile. Each chunk is divided separately,
// so with small chunks some warps have a place without a quad. GemvShape of gemv_mma.cuh computes the same.
func QuadsPerWarp(g format.Geometry, columns, chunk, warps int) int {
	quads, chunkQuads := ceil(columns, format.QuadColumns), ChunkQuads(g, chunk, warps)
	chunks := ceil(quads, chunkQuads)
	return (chunks-1)*ceil(chunkQuads, warps) + ceil(quads-(chunks-1)*chunkQuads, warps)
}

// Scratch is the shared memory of a thread block besides its ring, as far as it depends on the program: struct Scratch
// of runtime/cuda/amk/context.cuh. Passes use it to choose what fits, codegen to refuse what does not, and the cost
// model to count the ring's slots.
//
// In a compact scratch, matrix stages and attention share memory, a warp keeps one sum for each row of a tile instead
// of four, and activations are in the model's dtype instead of fp32. The kernel computes the same bits in both.
type Scratch struct {
	Compact bool
	Kept
	HeadDim    int // of the rotation
	PaddedHead int // elements of a head, in whole blocks of 16
	WarpHeads  int // query heads whose results a warp keeps
	OwnScores  int // of query heads of a unit, each with its own row: all warps keep them together
	Unit       int // bytes: what an attention unit has read: q of a group and a block of the cache, or q, k and v
	Vector     int // activations, which stages without tensor cores keep
	Activation int // bytes of one
}

// Kept are the values that stages keep in shared memory.
type Kept struct {
	Rows      int // most rows of the residual that an SM owns
	Rotations int // tables of cos and sin; at least 1
	Pass      ir.Pass
	Digits    int // bytes of the longest vector in fixed point, if there is room; in a scratch at least Chains
	Chains    int // the most ChainBytes, for which there is room, or the program is refused
	Slab      int // bytes of the largest PlainSlab of several tokens, of all matrix stages
	OddSlab   int // the same of those whose columns tensor cores do not take
	Chosen    int // most experts that a router chooses for a token
}

// Multiplies counts what a product keeps of its vector, or in a pass of several tokens of its sums and of a slab. The
// product has a distribution, and a vector in a type.
func (k *Kept) Multiplies(c *Cut, d *ir.Dist, activations ir.DType) {
	tokens := k.Pass.NumTokens()
	if tokens == 1 {
		if format.InFixedPoint(c.Matrix) {
			k.Digits = max(k.Digits, c.DigitBytes())
		}
		return
	}
	if q, quantised := c.Matrix.(format.Quantised); quantised {
		k.Chains = max(k.Chains, ChainBytes(q, d, c.Columns, c.Chunk, c.Warps, tokens))
	}
	slab := PlainSlab(c.Matrix.Geometry(), d, c.Columns, c.Chunk, c.Warps, tokens, activations.Bits()/8)
	if k.Slab = max(k.Slab, slab); c.Columns%4 != 0 {
		k.OddSlab = max(k.OddSlab, slab)
	}
}

// MultipliesEach counts what a product keeps that multiplies each token by matrices of its own, one token after another
// as in a pass of one: its vector, which has the columns of each matrix that a row is summed over.
func (k *Kept) MultipliesEach(c *Cut, activations ir.DType) {
	if format.InFixedPoint(c.Matrix) {
		k.Digits = max(k.Digits, c.DigitBytes())
	}
	if k.Pass.NumTokens() > 1 {
		k.Slab = max(k.Slab, c.sums()*roundUp(c.Columns, 32)*activations.Bits()/8)
	}
}

// MinDigits is the size of the array of digits if it is not used: C++ has no array of 0 bytes.
const MinDigits = 16

// ScratchIn returns the scratch of a program in a given size of shared memory, with a ring of slots of a given size:
// the compact one for several tokens, or if the other leaves no room for MinSlots, and either without digits if these
// would make the ring too short. columns are those of the program's matrix stages.
func ScratchIn(shared, slot int, m *ir.Model, tensorCores bool, kept Kept, columns ...int) Scratch {
	if kept.Pass.NumTokens() > 1 {
		if s := CompactScratchOf(m, tensorCores, kept, columns...); s.Slots(shared, slot) >= digitSlots {
			return s
		}
		kept.Digits = 0
		return CompactScratchOf(m, tensorCores, kept, columns...)
	}
	if s := ScratchOf(m, tensorCores, kept, columns...); s.Slots(shared, slot) >= digitSlots {
		return s
	}
	kept.Digits = 0
	if s := ScratchOf(m, tensorCores, kept, columns...); s.Slots(shared, slot) >= MinSlots {
		return s
	}
	return CompactScratchOf(m, tensorCores, kept, columns...)
}

// ScratchOf returns the scratch of a program as ScratchIn does, if there is room enough.
func ScratchOf(m *ir.Model, tensorCores bool, kept Kept, columns ...int) Scratch {
	s := CompactScratchOf(m, tensorCores, kept, columns...)
	s.Compact, s.Activation = false, 4
	if !tensorCores {
		s.Unit = 16 // q, k and v are in the vector
	}
	if keepsActivations(tensorCores, columns) {
		s.Vector = max(s.Vector, m.Most(func(f *ir.LayerFacts) int { return (f.Group() + 2) * f.HeadDim }))
	}
	return s
}

// CompactScratchOf returns the compact scratch of a program as ScratchIn does, whether or not it is needed.
func CompactScratchOf(m *ir.Model, tensorCores bool, kept Kept, columns ...int) Scratch {
	kept.Rows, kept.Rotations = roundUp(kept.Rows, 8), max(1, kept.Rotations)
	kept.Digits = max(MinDigits, kept.Digits, kept.Chains)
	if !tensorCores {
		kept.Digits = MinDigits
	}
	dim := m.Most(ir.HeadDimOf)
	s := Scratch{Compact: true, Kept: kept, HeadDim: dim, PaddedHead: roundUp(dim, 16), Vector: 4,
		Activation: m.Activations.Bits() / 8}
	switch {
	case kept.Pass.NumTokens() > 1 && tensorCores:
		s.Vector = max(s.Vector, kept.OddSlab/s.Activation)
	case kept.Pass.NumTokens() > 1:
		s.Vector = max(s.Vector, kept.Slab/s.Activation)
	case keepsActivations(tensorCores, columns):
		for _, n := range columns {
			s.Vector = max(s.Vector, roundUp(n, 32))
		}
	}
	for _, f := range m.Facts() {
		heads, own, unit := s.ofAttention(&f, m.Cache, tensorCores)
		s.WarpHeads, s.OwnScores, s.Unit = max(s.WarpHeads, heads), max(s.OwnScores, own), max(s.Unit, unit)
	}
	return s
}

// ofAttention is what attention of a kind of layers needs: heads whose results a warp keeps, scores of own rows, and
// bytes for a unit.
func (s *Scratch) ofAttention(f *ir.LayerFacts, cache ir.DType, tensorCores bool) (heads, own, unit int) {
	rows, group, block := s.Pass.NumRows(), f.Group(), f.Attended().Block(cache) // rows that a unit has
	if !tensorCores {
		unit = 4 * (group + 2) * f.HeadDim
		if rows > 1 {
			unit = rows*unit + block
		}
		return group, group, unit
	}
	padded, images := roundUp(f.HeadDim, 16), (rows+14)/16+1 // blocks that they are in
	unit = 2*rows*group*(padded+16) + images*block
	if cache == ir.I8 {
		unit += s.Pass.NumTokens() * 2 * 2 * padded // k and v as they are published
	}
	groups, sets := ceil(group, mmaHeads*Warps), 1 // of heads of a warp, and of warps with the same heads
	for sets*groups*mmaHeads < group {
		sets *= 2
	}
	if heads = mmaHeads; rows == 1 {
		heads = min(mmaHeads*groups, roundUp(group, 2))
	}
	return heads, sets * heads, unit
}

// mmaHeads is how many heads the columns of an mma are.
const mmaHeads = 8

// ResultStride is the distance from one head's results to the next one's, in elements: four more than a head has, so
// that lanes that store results of different heads have no bank conflicts.
func (s *Scratch) ResultStride() int { return s.PaddedHead + 4 }

// AttentionBytes is the shared memory of attention alone: the inputs of a unit, results, a base, a maximum and a sum
// for each head of each warp, and scores of own rows.
func (s *Scratch) AttentionBytes() int {
	return roundUp(s.Unit, 16) + roundUp(4*(Warps*s.WarpHeads*(s.ResultStride()+3)+s.OwnScores), 16)
}

// keepsActivations reports whether a stage keeps its activations in shared memory: tensor cores take them from
// registers, four at a time.
func keepsActivations(tensorCores bool, columns []int) bool {
	return !tensorCores || slices.ContainsFunc(columns, func(n int) bool { return n%4 != 0 })
}

// Bytes is the size of struct Scratch with the barriers of a ring of at most n slots, member by member. The emitted
// constant kScratchBytes is that of all others but the residual, and a static_assert holds the struct to it.
func (s *Scratch) Bytes(slots int) int {
	const (
		flushRows = 64
		warpSums  = 4 * 2 * Warps // bytes of one sum of every warp, in two buffers
		words     = 6             // after the tokens, and four of 64 bits
	)
	tokens, end := s.Pass.NumTokens(), 0
	add := func(align, bytes int) { end = roundUp(end, align) + bytes }
	partial := warpSums * flushRows
	if tokens > 1 {
		partial = warpSums * tokens * (flushRows + 8)
	}
	vector := roundUp(s.Activation*s.Vector, 16)
	add(8, 2*8*slots)
	if s.Compact {
		before := max(roundUp(s.Unit, 16), vector, roundUp(s.Digits, 16))
		add(16, max(before+partial, s.AttentionBytes()))
	} else {
		add(16, 4*partial)
	}
	add(4, warpSums*max(2, tokens)) // sums of squares
	add(16, 4*tokens*s.Rows)
	add(8, 8*s.Rotations*tokens*(s.HeadDim/2))
	add(4, warpSums*ceil(tokens, computing/flushRows)) // best values, and which ones
	if !s.Compact {
		add(16, roundUp(max(s.AttentionBytes(), s.Digits), 16))
		add(16, vector)
	}
	add(4, 4*(2*tokens+words))
	if s.Chosen > 0 { // which, their weights, a gate, and how often
		add(4, 4*(2*tokens*s.Chosen+tokens+1))
	}
	add(8, 4*8)
	return roundUp(end, 16)
}

// Others is the part of Bytes that depends neither on the ring nor on the rows of the residual.
func (s *Scratch) Others() int { return s.Bytes(0) - 4*s.Pass.NumTokens()*s.Rows }

// Slots is the number of slots of n bytes that a ring has besides the scratch in the given shared memory; negative if
// the scratch alone does not fit.
func (s *Scratch) Slots(shared, slot int) int { return (shared - s.Bytes(shared/slot)) / slot }

func ceil(n, d int) int { return (n + d - 1) / max(1, d) }

func roundUp(n, m int) int { return ceil(n, m) * m }
