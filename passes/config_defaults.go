package passes

import (
	"maps"

	"amkc/ir"
)

// withDefaults fills in what depends on the model or the target and the user has left open; normalise has a fixed
// value for everything else.
func withDefaults(c ir.ScheduleConfig, m *ir.Model, target *ir.Target) ir.ScheduleConfig {
	c = withChunk(c, m, target)
	if target != nil {
		c = withStock(c, m, target)
		c = withPace(c, target)
		c = withWarps(c, m, target)
	}
	return c
}

// withKnob is c with a knob that it leaves open set to value.
func withKnob(c ir.ScheduleConfig, group, name string, value int) ir.ScheduleConfig {
	if _, given := c.Tiling[group][name]; given {
		return c
	}
	tiling := maps.Clone(c.Tiling)
	if tiling == nil {
		tiling = map[string]map[string]int{}
	}
	if tiling[group] = maps.Clone(tiling[group]); tiling[group] == nil {
		tiling[group] = map[string]int{}
	}
	tiling[group][name] = value
	c.Tiling = tiling
	return c
}

const defaultChunk = 16384

// withChunk gives ring.chunk_bytes its default: that of the table, or what the smallest piece of the cache takes, 16
// rows of K and V, if that is more; half or a quarter of that where a block's shared memory has no room for a ring of
// such chunks. Where the smallest that there can be does not fit either, the scratch is compact, and the largest is
// chosen of which as many fit as are in flight and one more, or the smallest.
func withChunk(c ir.ScheduleConfig, m *ir.Model, target *ir.Target) ir.ScheduleConfig {
	piece := (m.DType.Bytes(16*2*((m.HeadDim+15)/16*16)) + ir.ChunkUnit - 1) / ir.ChunkUnit * ir.ChunkUnit
	chunk, least := max(defaultChunk, piece), max(ir.MinChunk, piece)
	if rows := c.Knob("gemv", "rows", tileRows); target != nil && rows > 0 {
		smem := smemGiven(c, target)
		scratch := scratchAtMost(m, target, rows, ir.ScratchOf)
		chunk = halved(max(defaultChunk, piece), least,
			func(chunk int) bool { // more in flight than usual is for the user to fit
				return (defaultInFlight+1)*chunk <= smem && scratch.Slots(smem, chunk) >= ir.MinSlots
			})
		if scratch.Slots(smem, chunk) < ir.MinSlots {
			scratch = scratchAtMost(m, target, rows, ir.CompactScratchOf)
			chunk = halved(max(defaultChunk, piece), least,
				func(chunk int) bool { return scratch.Slots(smem, chunk) > defaultInFlight })
		}
	}
	if chunk == defaultChunk {
		return c
	}
	return withKnob(c, "ring", "chunk_bytes", chunk)
}

// halved is the first of chunk, its half, its quarter and so on that fits, or the least one.
func halved(chunk, least int, fits func(chunk int) bool) int {
	for !fits(chunk) && chunk > least {
		if chunk /= 2; chunk < least || chunk%ir.ChunkUnit != 0 {
			chunk = least
		}
	}
	return chunk
}

// smemGiven is how much shared memory a block may use.
func smemGiven(c ir.ScheduleConfig, target *ir.Target) int {
	if c.SMemBytesPerBlock != 0 {
		return c.SMemBytesPerBlock
	}
	return target.SMemOptin
}

// withStock makes the stream give way to the exchanges where these take longer than it: fewer chunks are in flight
// while half of the ring is filled, and the run-ahead into L2 makes up for it. A layer's five exchanges take some 2
// us each whatever the model, so the weights of a layer decide (docs/performance.md). Whoever gives one of the two
// knobs has decided.
func withStock(c ir.ScheduleConfig, m *ir.Model, target *ir.Target) ir.ScheduleConfig {
	const exchangesMicros, leastSlots = 10, 8
	given := func(name string) bool { _, is := c.Tiling["ring"][name]; return is }
	if given("stock") || given("in_flight_stocked") || !target.BulkCopy || target.HBMGBs == 0 {
		return c
	}
	layer := m.DType.Bytes(m.Hidden * (2*(m.Heads+m.KVHeads)*m.HeadDim + 3*m.Intermediate))
	if float64(layer) >= exchangesMicros*1e3*target.HBMGBs {
		return c
	}
	ring, known := ringOf(c, m, target)
	if !known || ring.slots < leastSlots || ring.depth == 1 {
		return c
	}
	return withKnob(c, "ring", "stock", ring.slots/2)
}

// withPace asks L2 for a chunk a little more often where the stream gives way to the exchanges: the less arrives in
// the ring by itself, the more has to be at hand when it is called for. More often still gains nothing, and costs at
// long contexts (docs/performance.md).
func withPace(c ir.ScheduleConfig, target *ir.Target) ir.ScheduleConfig {
	const stockedPace = 700
	if c.Knob("ring", "stock", 0) <= 0 || c.Knob("ring", "run_ahead", defaultRunAhead) == 0 || !target.BulkCopy {
		return c
	}
	return withKnob(c, "ring", "pace", stockedPace)
}

// withWarps lets four warps share a tile instead of eight where eight would have a single quad of 128 columns each,
// or none, and every SM has several tiles: then what a warp does for a tile besides multiplying is most of its work
// (docs/performance.md). Two tiles are worked on at once, and so the ring must hold one of them besides the chunks on
// their way.
func withWarps(c ir.ScheduleConfig, m *ir.Model, target *ir.Target) ir.ScheduleConfig {
	const quadColumns = 128
	quads := (m.Hidden + quadColumns - 1) / quadColumns
	if quads != 4 && quads != 8 || !target.RunsOnTensorCores(m.DType) {
		return c
	}
	ring, known := ringOf(c, m, target)
	tile := quads * quadColumns * tileRows * 2
	if !known || (tile+ring.chunk-1)/ring.chunk+1+ring.depth > ring.slots {
		return c
	}
	for _, s := range []struct {
		stage string
		rows  int
	}{{"qkv", (m.Heads + 2*m.KVHeads) * m.HeadDim}, {"gate_up", 2 * m.Intermediate}, {"lm_head", m.Vocab}} {
		if s.rows/tileRows > target.SMs {
			c = withKnob(c, "warps", s.stage, 4)
		}
	}
	return c
}

// ring is the one that a configuration gives: bytes of a chunk, chunks that it holds at least, and chunks in flight.
type ring struct{ chunk, slots, depth int }

// ringOf finds the ring; not if normalise will refuse what it depends on.
func ringOf(c ir.ScheduleConfig, m *ir.Model, target *ir.Target) (ring, bool) {
	depth, bad := depthOf(&c)
	chunk, rows := c.Knob("ring", "chunk_bytes", defaultChunk), c.Knob("gemv", "rows", tileRows)
	if bad != nil || chunk <= 0 || rows <= 0 {
		return ring{}, false
	}
	smem := smemGiven(c, target)
	scratch := scratchAtMost(m, target, rows, func(m *ir.Model, tensorCores bool, rows int, columns ...int) ir.Scratch {
		return ir.ScratchIn(smem, chunk, m, tensorCores, rows, columns...)
	})
	return ring{chunk, scratch.Slots(smem, chunk), depth}, true
}

type scratchFunc func(m *ir.Model, tensorCores bool, rows int, columns ...int) ir.Scratch

// scratchAtMost is the scratch of the SM that owns most of the residual, in pieces of so many rows, if it is dealt
// out evenly.
func scratchAtMost(m *ir.Model, target *ir.Target, rows int, of scratchFunc) ir.Scratch {
	owned := (m.Hidden/rows/max(1, target.SMs) + 1) * rows
	return of(m, target.RunsOnTensorCores(m.DType), owned, m.Hidden, m.Heads*m.HeadDim, m.Intermediate)
}
