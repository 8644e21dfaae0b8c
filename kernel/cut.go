package kernel

import "amkc/ir/format"

// A Cut is how the columns of a matrix stage are cut on tensor cores: into chunks of the ring, these into the quads of
// each of the warps that share a tile, and the quads of a warp into slabs.
type Cut struct {
	Matrix  format.Format
	Columns int
	Chunk   int // bytes
	Warps   int // that share a tile
	Chains  int // quarters of a quad that share a chain of mma, unless the matrix is quantised
	Sums    int // that a row is added up from, with these columns each; 0: one
}

// Quads is the number of quads of a warp, of one of the sums.
func (c *Cut) Quads() int { return QuadsPerWarp(c.Matrix.Geometry(), c.Columns, c.Chunk, c.Warps) }

// Slabs is the number of slabs: a chain of mma ends with each of them. kSlabChunks of weights.cuh is the same.
func (c *Cut) Slabs() int { return ceil(c.chunks(), c.slabChunks()) }

// SlabQuads is the number of quads of a slab per warp: those of whole chunks, if there are several slabs.
func (c *Cut) SlabQuads() int {
	if c.Slabs() == 1 {
		return c.Quads()
	}
	return c.slabChunks() * c.quadsOfChunk()
}

// Batches is how many batches of integers a warp multiplies for a tile: it adds up none of a batch before it has
// multiplied all.
func (c *Cut) Batches() int {
	if c.wholeMatrices() {
		return ceil(c.sums()*c.Quads(), c.batch())
	}
	return c.sums() * ceil(c.Quads(), c.batch())
}

// batch is the number of quads of a batch: of whole matrices that are summed over, of a chunk each, if these have so
// few, and else at most those that a warp has of a matrix and of a chunk. GemvShape of gemv_mma.cuh computes the same.
func (c *Cut) batch() int {
	if c.wholeMatrices() {
		return min(batchQuads, c.sums()*c.Quads())
	}
	return min(batchQuads, c.Quads(), c.quadsOfChunk())
}

func (c *Cut) wholeMatrices() bool {
	return c.sums() > 1 && c.chunks() == 1 && batchQuads%c.Quads() == 0
}

// ChunkMatrices is how many matrices that a row is summed over have a tile in each chunk, with bulk copies and tensor
// cores. kChunkMatrices of stage.cuh says the same.
func (c *Cut) ChunkMatrices() int {
	for n := batchQuads; n > 1; n /= 2 {
		if c.sums()%n == 0 && batchQuads%(n*c.Quads()) == 0 && n*c.Matrix.Geometry().TileBytes(c.Columns) <= c.Chunk {
			return n
		}
	}
	return 1
}

func (c *Cut) sums() int { return max(1, c.Sums) }

// quadsOfChunk is how many quads of a chunk a warp has at most.
func (c *Cut) quadsOfChunk() int {
	return ceil(ChunkQuads(c.Matrix.Geometry(), c.Chunk, c.Warps), c.Warps)
}

func (c *Cut) chunks() int {
	return ceil(ceil(c.Columns, format.QuadColumns), ChunkQuads(c.Matrix.Geometry(), c.Chunk, c.Warps))
}

// slabChunks is how many chunks a slab has. Slabs of chains of two quarters have about the same size.
func (c *Cut) slabChunks() int {
	ofChunk := c.quadsOfChunk()
	if _, quantised := c.Matrix.(format.Quantised); quantised || c.Chains == 1 {
		return max(1, slabQuads/ofChunk)
	}
	chunks := c.chunks()
	return ceil(chunks, ceil(chunks, max(1, pairedSlabQuads/ofChunk)))
}

// How many quads of a slab are one warp's at most, unless a chunk has more: where a quarter has a chain of its own, and
// where two quarters share one, so that a warp keeps half as many sums.
const (
	slabQuads       = 4
	pairedSlabQuads = 5
)
