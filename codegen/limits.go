package codegen

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
	"amkc/knobs"
)

// codeLimit is for programs that are sound, but that the stage bodies have no room for. The device runtime asserts
// the same limits; finding them here gives a message in the user's words.
var codeLimit = diag.New("AMK4005", "a stage is too large for its body", `
The device code has fixed bounds: a warp keeps at most 32 quads (128 columns each) of a row in registers, a chunk of
cache rows must fit a ring slot, at most 128 query heads share a kv head, on tensor cores a head has at most 256
elements and norms of all queries and all keys take at most 32768 together, and the scratch must leave room for two
ring slots. Where fewer than all warps share a tile, the tiles of the others must fit the ring. A setting of the stream
must be one that the ring can reach, and must not stop it. A constant must fit its type, int for sizes and positions and
float32 for eps and scales, and so must the bytes that a kv head's cache takes. The message says which bound is met, and
which knob, dtype or target moves it.

The scratch is shared memory outside the ring: activations that a stage reads (without tensor cores, as on a T4 or with
fp32), sums, and what attention keeps for the query heads of a kv head. Where it has no room it is laid out more
tightly, and only what does not fit then is refused. Most published models fit every target (docs/models.md).`)

const (
	maxGroup   = 128
	maxMMAHead = 256
	maxNormed  = 32 * 4 * 32 * kernel.Warps // elements: 32 times four of each thread are read at once
)

// maxColumns is what the warps of a block keep of a vector on tensor cores.
const maxColumns = kernel.MaxQuads * format.QuadColumns * kernel.Warps

// checkKnobs refuses settings that no stage body is written for, before anything is computed with them.
func (b *builder) checkKnobs() error {
	return knobs.Check(&b.p.Config).Err()
}

// cut is how the columns of a stage are cut, of each of the sums if it adds up several.
func (b *builder) cut(s *ir.Stage, f format.Format, columns, sums int) *kernel.Cut {
	c := &b.p.Config
	return &kernel.Cut{Matrix: f, Columns: columns, Chunk: knobs.ChunkBytes.Of(c), Warps: knobs.Warps.Of(c, s.Role),
		Chains: knobs.Chains.Of(c, s.Role), Sums: sums}
}

// checkGEMV bounds the registers that a warp needs for its share of the columns. The path without tensor cores keeps
// the vector in shared memory and has no such bound. In a pass of several tokens a warp has a slab of them at a time,
// unless they go by one after another.
func (b *builder) checkGEMV(s *ir.Stage, k *kernel.Stage, f format.Format, warps int) error {
	columns, sums := k.Columns, k.Sums()
	if !b.usesMMA() || columns%4 != 0 {
		return nil
	}
	chunk, g := knobs.ChunkBytes.Of(&b.p.Config), f.Geometry()
	perWarp := func(chunk, warps int) int { return sums * kernel.QuadsPerWarp(g, columns, chunk, warps) }
	switch each := perWarp(chunk, warps); {
	case b.pass.NumTokens() > 1 && !k.ByExperts() && b.cut(s, f, columns, sums).Slabs() > 1 &&
		(warps < kernel.Warps || b.readings[s].held > 0):
		return diag.Errorf(codeLimit, "stage "+s.Name,
			"%d columns in chunks of %d bytes over %d warps are several slabs, and in a pass of several tokens all %d "+
				"warps share the tiles of such a stage; want tiling.warps.%s of %d",
			columns, chunk, warps, kernel.Warps, s.Role, kernel.Warps)
	case each <= kernel.MaxQuads:
		return nil
	case perWarp(kernel.MaxChunk, kernel.Warps) > kernel.MaxQuads:
		n := b.needs()
		n.add(s.Name, columns)
		return diag.Errorf(codeLimit, "stage "+s.Name,
			"it reads %s, and the warps of a block keep at most %d in registers; want %s",
			values(&b.p.Model, sums*columns), maxColumns, b.wantRoom(&n))
	default:
		return diag.Errorf(codeLimit, "stage "+s.Name,
			"%d columns in chunks of %d bytes over %d warps are %d quads per warp, and at most %d fit; want "+
				"tiling.warps.%s or tiling.ring.chunk_bytes larger",
			columns, chunk, warps, each, kernel.MaxQuads, s.Role)
	}
}

// cacheBytes is what rows of K and V of one kv head take in the cache, as whole blocks of 16.
func (b *builder) cacheBytes(rows int) int { return cacheBytes(&b.p.Model, rows) }

func cacheBytes(m *ir.Model, rows int) int {
	return (rows + 15) / 16 * m.CacheBlock()
}

// checkAttention bounds the heads of a group and the bytes of a chunk of cache rows.
func (b *builder) checkAttention(s *ir.Stage, k *kernel.Stage, at site) error {
	f, rows := b.p.FactsOf(s, at.loop), k.ShareRows
	slot := knobs.ChunkBytes.Of(&b.p.Config)
	bytes := b.cacheBytes(rows)
	switch {
	case rows%16 != 0 || bytes > slot:
		return diag.Errorf(codeLimit, "stage "+s.Name,
			"%d cache rows take %d bytes and a ring slot has %d; want whole blocks of 16 rows that fit, or "+
				"tiling.ring.chunk_bytes of at least %d",
			rows, bytes, slot, bytes)
	case f.Group() > maxGroup:
		return diag.Errorf(codeLimit, "stage "+s.Name, "%d query heads a kv head; at most %d are supported",
			f.Group(), maxGroup)
	case b.usesMMA() && f.HeadDim > maxMMAHead:
		return diag.Errorf(codeLimit, "stage "+s.Name,
			"head size %d; with tensor cores at most %d are supported (compile with --dtype fp32, or for a target "+
				"without them)", f.HeadDim, maxMMAHead)
	case b.usesMMA() && f.HeadDim%4 != 0:
		return diag.Errorf(codeLimit, "stage "+s.Name,
			"head size %d; with tensor cores it must be a multiple of 4 (compile with --dtype fp32, or for a target "+
				"without them)", f.HeadDim)
	case b.usesMMA() && k.WholeNorm && f.QueryRows()+f.KeyRows() > maxNormed:
		return diag.Errorf(codeLimit, "stage "+s.Name,
			"norms of all queries and all keys take %d elements; with tensor cores at most %d are supported (compile "+
				"with --dtype fp32, or for a target without them)", f.QueryRows()+f.KeyRows(), maxNormed)
	}
	return nil
}

// checkStream refuses settings of the stream that would do nothing, or stop it.
func (b *builder) checkStream(slots int) error {
	c := &b.p.Config
	depth, bulk := min(knobs.InFlight.Of(c), slots), b.p.Target.BulkCopy
	stocked := knobs.InFlightStocked.Of(c)
	refuse := func(k knobs.Int, format string, args ...any) error {
		return diag.Errorf(codeLimit, "program", "%s is %d; "+format,
			append([]any{k.Row().Path(""), k.Of(c)}, args...)...)
	}
	stocks := []knobs.Int{knobs.Stock}
	if knobs.StreamsApart(b.p) {
		stocks = append(stocks, knobs.LongStock)
	}
	for _, k := range stocks {
		switch stock := k.Of(c); {
		case stock == 0:
		case !bulk:
			return refuse(k, "want 0: the target has no bulk copies, which alone are counted one by one")
		case stock >= slots:
			return refuse(k, "want less than the ring's %d slots, or 0", slots)
		case stocked >= depth:
			return refuse(knobs.InFlightStocked, "want less than the %d chunks in flight otherwise, or %s 0", depth,
				strings.TrimPrefix(k.Row().Path(""), "tiling."))
		}
	}
	return nil
}

// tileChunks is how many chunks one tile of a product is.
func tileChunks(s *stage, columns, slot, warps int) int {
	quads := (columns + format.QuadColumns - 1) / format.QuadColumns
	inChunk := kernel.ChunkQuads(s.Matrix.Geometry(), slot, warps)
	return (quads + inChunk - 1) / inChunk
}

// checkGroups bounds what a group of warps skips in the ring where fewer than all share a tile: the tiles of the
// other groups. The full barrier of a slot tells one phase from the next alone, so that the chunk before in the same
// slot must have landed when the group looks at its own, and that is known only of what lies before the chunk it has
// looked at last; where chunks may land out of order, a window before it.
func (b *builder) checkGroups(slot, slots int) error {
	if !b.usesMMA() {
		return nil
	}
	window := 0
	if b.p.Target.BulkCopy {
		window = min(knobs.InFlight.Of(&b.p.Config), slots)
	}
	for _, s := range b.d.Descriptors {
		columns := b.columnsOf(s.IR)
		if columns == 0 {
			continue
		}
		warps := knobs.Warps.Of(&b.p.Config, s.IR.Role)
		groups, chunks := kernel.Warps/warps, tileChunks(s, columns, slot, warps)
		if skipped := (groups - 1) * chunks; skipped > 0 && skipped+1+window > slots {
			return diag.Errorf(codeLimit, "stage "+s.IR.Name,
				"%d tiles of %d chunks at once need a ring of %d slots, and it has %d; want tiling.warps.%s larger",
				groups, chunks, skipped+1+window, slots, s.IR.Role)
		}
	}
	return nil
}

// usesMMA reports whether the program's matrix products run on tensor cores.
func (b *builder) usesMMA() bool { return b.p.Target.RunsOnTensorCores(b.p.Model.Weights) }

// mostParts is the most parts that a branch has whose norm is added to the residual.
func (b *builder) mostParts() int {
	most := 1
	for _, st := range b.d.Descriptors {
		most = max(most, st.Of.Parts)
	}
	return most
}

// checkOwnRows bounds what a thread reads of a branch where owners add rows of it, as norm_rows.cuh counts: it has a
// bit for each group of columns, and one for each part of a row of a token that it adds. rows are those of an SM.
func (b *builder) checkOwnRows(rows int) error {
	if !slices.ContainsFunc(b.d.Bodies, func(b *kernel.Body) bool { return b.Keeps&kernel.BranchRows != 0 }) {
		return nil
	}
	const bits, threads = 32, kernel.Warps * 32
	parts, hidden := b.mostParts(), b.p.Model.Hidden
	if most := kernel.MaxReplicated(&b.p.Model); hidden > most/parts {
		return diag.Errorf(codeLimit, "program", "branches of %d values in %d parts are added to the residual; want "+
			"at most %d values in all", hidden, parts, most)
	}
	if (b.pass.NumTokens()*rows+threads-1)/threads*parts > bits {
		return diag.Errorf(codeLimit, "program", "an SM adds branches of %d parts to %d rows of the residual of each "+
			"of %d tokens; want at most %d rows, by more SMs or passes of fewer tokens", parts, rows,
			b.pass.NumTokens(), bits/parts*threads/b.pass.NumTokens())
	}
	return nil
}
