package cost

import (
	"math"

	"amkc/ir"
	"amkc/ir/format"
	"amkc/kernel"
)

// How a pass of several tokens multiplies, besides what it has in common with a step: gemm_mma.cuh, gemm_digits.cuh and
// gemm_fma.cuh of the kernel. Stages, exchanges and the ring are a step's.

const roundQuads = 2 // of a warp, whose words it asks for at once

// A gemm is what a warp has of a matrix stage in a pass of several tokens.
type gemm struct {
	sets   int     // of four tokens, the last one filled or not
	slabs  int     // of columns, each of which is read and multiplied before the next
	quads  int     // of a slab, that a warp multiplies in a tile
	digits float64 // work to make activations digits: 1 for integers, less for fp8, 0 for elements as they are
}

// gemm says how a matrix stage multiplies all tokens of the pass.
func (r *reader) gemm(s *stage, f format.Format, columns int) gemm {
	p := r.multiplies(s, f, columns, 1)
	out := gemm{sets: ceil(r.program.Pass.NumTokens(), kernel.SetTokens), slabs: p.Slabs(), quads: p.SlabQuads()}
	switch {
	case format.InFixedPoint(f):
		out.digits = 1
	case halved(f):
		out.digits = 0.5
	}
	return out
}

// halved reports whether activations are made halves of numbers of 16 bits for a format, as for fp8.
func halved(f format.Format) bool {
	_, quantised := f.(format.Quantised)
	return quantised && !format.InFixedPoint(f)
}

// multiply runs a task of a matrix stage for several tokens: a slab of columns after the other is read, made digits of
// where its weights are integers, and multiplied by all tiles of a flush. Columns that are one slab are read once for
// all flushes.
func (r *run) multiply(s *stage, t *task, sm int, ready float64, waits bool) (at, late float64, took Parts) {
	g, fit := &t.gemm, r.passes
	turns := math.Ceil(float64(t.tiles*s.warps) / kernel.Warps)
	parts := 1
	if g.slabs > 1 {
		parts = g.slabs * max(1, ceil(t.tiles, kernel.FlushTiles))
	}
	busy := t.streamed / r.drain
	if g.digits > 0 {
		busy = max(busy, turns*float64(t.quads*g.sets)*fit.IntegerQuad/r.clock)
	}
	slabs := float64(max(1, g.slabs)) // a product without columns has none
	busy = busy/float64(parts) + turns*slabs/float64(parts)*tileCycles/r.clock
	around := r.instructions(r.fit.StageCode)
	// Of the columns of a slab, which the last one has fewer of.
	quads := float64(t.quads) / slabs
	code := firstCode + quads*(r.fit.MatrixQuad+fit.TokenCode*float64(g.sets))
	if t.ragged {
		code += r.fit.Ragged
	}
	first := r.instructions(code) + g.digits*fit.DigitQuad*quads*float64(g.sets)/r.clock
	rounds := float64(max(1, ceil(g.quads, roundQuads)))
	round := l2Latency + t.polled/slabs/rounds/r.words()

	at = r.at[sm] + around
	for part := range parts { // slabs, of each flush
		asked := at
		vector := asked + rounds*round
		if part == 0 && waits {
			vector = max(vector, ready+(rounds-1+fit.Rereads)*round)
		}
		at = vector + first + busy
		if r.streams && t.streamed > 0 {
			ring, bytes := &r.rings[sm], t.streamed/float64(parts)
			at = ring.take(vector+first, bytes, bytes/busy, t.worked)
			if late = 0; r.waits {
				late = ring.late(r.fit.Uneven)
			}
		}
		took.Exchange += vector - asked
		took.Instructions += first
		took.Stream += at - vector - first
	}
	took.Instructions += 2 * around
	return at + around, late, took
}

// words is the speed at which an SM reads words of L2. All read at once after an exchange; where nobody waits each
// reads on its own.
func (r *run) words() float64 {
	if r.waits {
		return r.l2
	}
	return l2Alone * r.clock
}

// unitRows is how many rows of a sequence a unit of attention has: those of its group, or all.
func (r *reader) unitRows(attention *ir.Op) int {
	all := r.program.Pass.NumRows()
	return min(all, max(1, attention.IntAt("rows", 0, all)))
}

// takes is how often a unit, with a number of rows of a number of heads, takes its cache rows: its warps have results
// of a few columns at once, a column being a head of a row, and without tensor cores of one row.
func (r *reader) takes(rows, heads int) int {
	const columns = 16
	switch {
	case rows == 1:
		return 1
	case tensor(r.program):
		return ceil(rows*heads, columns*warpSets(heads))
	}
	return rows
}

// warpSets is the number of sets of warps with different heads.
func warpSets(heads int) int {
	const product = 8 // columns of one
	groups := max(1, ceil(heads, kernel.Warps*product))
	sets := 1
	for sets < ceil(heads, groups*product) {
		sets *= 2
	}
	return sets
}
