package knobs

import (
	"slices"

	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
)

const tileRows = 8

// chunkThatFits is the default of ring.chunk_bytes: that of the table, or what the smallest piece of the cache takes,
// 16 rows of K and V, if that is more; half or a quarter of that where a block's shared memory has no room for a ring
// of such chunks, as far as the quads of the widest vector fit the warps then. Where the smallest that there can be
// does not fit either, the scratch is compact, and the largest is chosen of which as many fit as are in flight by
// default and one more, or the smallest.
func chunkThatFits(c *Case, _ string) int {
	m := c.Model
	inFlight := c.rows[InFlight].Default
	piece := (m.CacheBlock() + kernel.ChunkUnit - 1) / kernel.ChunkUnit * kernel.ChunkUnit
	chunk, least := max(c.rows[ChunkBytes].Default, piece), max(kernel.MinChunk, piece)
	if even := c.evenChunk(); even >= least {
		chunk = even
	}
	if c.Target == nil {
		return chunk
	}
	for least < chunk && c.quads(least) > kernel.MaxQuads {
		least += kernel.ChunkUnit
	}
	shared, scratch := c.Of(SharedBytes), c.scratch(kernel.ScratchOf)
	step := kernel.ChunkUnit
	if _, quantised := c.Format.(format.Quantised); quantised {
		step = kernel.ChunkStep
	}
	fits := func(chunk int) bool { // more in flight than usual is for the user to fit
		return (inFlight+1)*chunk <= shared && scratch.Slots(shared, chunk) >= kernel.MinSlots
	}
	if even := c.evenRows(); even > chunk && fits(even) {
		return even
	}
	fit := halved(chunk, least, step, fits)
	if scratch.Slots(shared, fit) >= kernel.MinSlots {
		return fit
	}
	scratch = c.scratch(kernel.CompactScratchOf)
	return halved(chunk, least, step, func(chunk int) bool { return scratch.Slots(shared, chunk) > inFlight })
}

// quads are those that a warp has of the widest vector; 0 without tensor cores, where it has none.
func (c *Case) quads(chunk int) int {
	m := c.Model
	f := c.Format
	if f == nil || !c.Target.RunsOnTensorCores(m.Weights) {
		return 0
	}
	widest := slices.Max(m.Columns())
	return kernel.QuadsPerWarp(f.Geometry(), widest, chunk, c.rows[Warps].Default)
}

// evenChunk is the chunk in whose quads a tile of the hidden size is cut evenly, if matrices are quantised: their quads
// are not powers of two of bytes. It has a quarter more bytes than usual at most, and as many quads for each warp; 0 if
// no chunk is. Of four bits it has up to three fifths more, where that holds a whole tile and a quarter does not: as
// many quads then as there is room for. The shapes of Qwen3.5-27B and Qwen3-14B take 19 and 13 % less time so
// (docs/performance.md).
func (c *Case) evenChunk() int {
	q, quantised := c.Format.(format.Quantised)
	if !quantised {
		return 0
	}
	ceil := func(n, d int) int { return (n + d - 1) / d }
	bytes, warps := c.Format.Geometry().QuadBytes(), c.rows[Warps].Default
	quads, most := ceil(c.Model.Hidden, format.QuadColumns), c.rows[ChunkBytes].Default*5/4/bytes
	each := ceil(quads, ceil(quads, most))
	if even := ceil(each, warps) * warps; even <= most {
		each = even
	}
	whole := c.rows[ChunkBytes].Default * 8 / 5 / bytes / warps * warps
	if q.DType() == "I4" && most < quads && quads <= whole {
		each = whole
	}
	return max(kernel.MinChunk, ceil(each*bytes, kernel.ChunkStep)*kernel.ChunkStep)
}

// evenRows is the chunk that as many blocks of a cache of integers fill as all warps share evenly, or as few of them
// do: with their scales they are a little more than a power of two of bytes. It has an eighth more bytes than usual at
// most; 0 for other caches.
func (c *Case) evenRows() int {
	if c.Model.Cache != ir.I8 {
		return 0
	}
	blocks, bytes, most := c.rows[Warps].Default, c.Model.CacheBlock(), c.rows[ChunkBytes].Default*9/8
	for blocks > 1 && blocks*bytes > most {
		blocks /= 2
	}
	return (blocks*bytes + kernel.ChunkStep - 1) / kernel.ChunkStep * kernel.ChunkStep
}

// halved is the first of chunk, its half, its quarter and so on that fits, or the least one. Those that are not a
// multiple of step are passed over.
func halved(chunk, least, step int, fits func(chunk int) bool) int {
	for !fits(chunk) && chunk > least {
		if chunk /= 2; chunk < least || chunk%step != 0 {
			chunk = least
		}
	}
	return chunk
}

// allShared is the default of smem_bytes_per_block.
func allShared(c *Case, _ string) int {
	if c.Target == nil {
		return 0
	}
	return c.Target.SMemOptin
}

// inFlightOfLongLayers requests as much as the memory delivers in 1.5 us, where a layer streams for long: with less,
// the stream waits for round trips. Where layers are short, a word of an exchange that queues after more chunks costs
// more than that (docs/performance-history.md). Of quantised experts, whose chunks are small, as many bytes are
// requested as of other matrices.
func inFlightOfLongLayers(c *Case, _ string) int {
	const longMicros, tripMicros, leastSlots = 40, 1.5, 8
	t, usual := c.Target, c.rows[InFlight].Default
	if _, quantised := c.Format.(format.Quantised); quantised && t != nil && t.BulkCopy && c.hasExperts() {
		bytes, chunk := usual*c.rows[ChunkBytes].Default, c.Of(ChunkBytes)
		return max(usual, min((bytes+chunk-1)/chunk, c.slots()/2))
	}
	if t == nil || !t.BulkCopy || layerMicros(c) < longMicros {
		return usual
	}
	slots := c.slots()
	if slots < leastSlots {
		return usual
	}
	trip := math.Ceil(tripMicros * 1e3 * t.HBMGBs / float64(t.SMs*c.Of(ChunkBytes)))
	most := min(slots/2, c.rows[InFlight].Legal.Hi)
	return max(usual, int(min(trip, float64(most))))
}

// hasExperts reports whether there are layers of experts, of which a router chooses some.
func (c *Case) hasExperts() bool { return c.Model.Most(ir.ExpertsOf) > 0 }

// layerMicros is how long the weights of a layer stream, in us, in the mean over layers that differ; 0 where the
// bandwidth is not known.
func layerMicros(c *Case) float64 {
	t, m := c.Target, c.Model
	if t.HBMGBs == 0 || c.Format == nil {
		return 0
	}
	rows, layers, g := 0, max(1, m.Layers), c.Format.Geometry()
	for i := range layers {
		f := m.Of(i)
		mixer := 2 * (f.QueryRows() + f.KeyRows())
		if f.Taps > 0 {
			mixer = 4*f.Channels + f.StateChannels() + 2*f.StateHeads*f.StateValues
		}
		rows += mixer + 3*f.Intermediate
	}
	elements := float64(m.Hidden*rows) / float64(layers)
	return elements * float64(g.BlockBytes) / float64(g.Rows*g.Columns) / (1e3 * t.HBMGBs)
}

// stockOfShortLayers makes the stream give way to the exchanges where these take longer than it: fewer chunks are in
// flight while half of the ring is filled, and the run-ahead into L2 makes up for it. A layer's five exchanges take
// some 2 us each whatever the model, so the weights of a layer decide. Quantised weights are multiplied hardly faster
// than they arrive, so that exchanges decide for longer layers too (docs/performance.md). Setting
// ring.in_flight_stocked disables the default. Where experts are chosen, the ring is empty in every layer, and is
// filled as fast as may be.
func stockOfShortLayers(c *Case, _ string) int {
	const leastSlots = 8
	exchangesMicros := 10.0
	if _, quantised := c.Format.(format.Quantised); quantised {
		exchangesMicros = 60
	}
	t := c.Target
	if t == nil || c.Given(InFlightStocked) || !t.BulkCopy || t.HBMGBs == 0 || c.Of(InFlight) == 1 {
		return 0
	}
	slots := c.slots()
	if layerMicros(c) >= exchangesMicros || slots < leastSlots || c.hasExperts() {
		return 0
	}
	return slots / 2
}

// paceOfStock asks L2 for a chunk a little more often where the stream gives way to the exchanges: with fewer chunks in
// flight, more of them have to be in L2 when they are requested. More often still gains nothing, and costs at long
// contexts (docs/performance-history.md).
func paceOfStock(c *Case, _ string) int {
	const stocked = 700
	if c.Target == nil || !c.Target.BulkCopy || c.Of(Stock) == 0 || c.Of(RunAhead) == 0 {
		return c.rows[Pace].Default
	}
	return stocked
}

// warpsOfShortRows lets four warps share a tile instead of eight where eight would have a single quad of 128 columns
// each, or none, and every SM has several tiles: most of a warp's work for a tile is not multiplication then
// (docs/performance-history.md). Two tiles are worked on at once, and so the ring must hold one of them besides the
// chunks on their way.
func warpsOfShortRows(c *Case, stage string) int {
	const short = 4
	m, t, all := c.Model, c.Target, c.rows[Warps].Default
	f := c.Format
	if f == nil {
		return all
	}
	g := f.Geometry()
	quads := (m.Hidden + format.QuadColumns - 1) / format.QuadColumns
	if t == nil || quads != 4 && quads != 8 || !t.RunsOnTensorCores(m.Weights) {
		return all
	}
	if stage == "gate_up" && m.Most(ir.ExpertsOf) > 0 {
		return all // not measured: an expert has few rows
	}
	chunk, tile := c.Of(ChunkBytes), quads*g.QuadBytes()
	if (tile+chunk-1)/chunk+1+c.Of(InFlight) > c.slots() {
		return all
	}
	rows := map[string]int{"qkv": m.Most(qkvRows), "gate_up": 2 * m.Width(),
		"lm_head": m.Vocab}
	if rows[stage]/g.Rows > t.SMs {
		return short
	}
	return all
}

// chainsOfShortRows lets each quarter have a chain of its own where a warp has so few quads that the exchange of
// operands, which chains of two quarters need, counts.
func chainsOfShortRows(c *Case, _ string) int {
	const short = 1024
	_, quantised := c.Format.(format.Quantised)
	if c.Target == nil || !c.Target.RunsOnTensorCores(c.Model.Weights) || quantised || c.Model.Hidden <= short {
		return 1
	}
	return c.rows[Chains].Default
}

// firstPollOfPairs waits where that was measured to gain what the exchange of operands costs: 559.4 us for
// Llama-3.2-1B on an H200, 562.1 without, and 558.8 with a chain for each quarter.
func firstPollOfPairs(c *Case, _ string) int {
	const least, most, cycles = 1024, 2048, 256
	if hidden := c.Model.Hidden; hidden <= least || hidden > most || c.OfStage(Chains, "qkv") == 1 {
		return 0
	}
	return cycles
}

// slots is how many chunks the ring holds at least.
func (c *Case) slots() int {
	shared, chunk := c.Of(SharedBytes), c.Of(ChunkBytes)
	scratch := c.scratch(func(m *ir.Model, tensorCores bool, kept kernel.Kept, columns ...int) kernel.Scratch {
		if format.InFixedPoint(c.Format) {
			kept.Digits = c.digitBytes(chunk, columns)
		}
		return kernel.ScratchIn(shared, chunk, m, tensorCores, kept, columns...)
	})
	return scratch.Slots(shared, chunk)
}

// digitBytes is the shared memory of a block for the longest vector in fixed point: for a matrix with as many columns,
// or for all experts of a token.
func (c *Case) digitBytes(chunk int, columns []int) int {
	cut := kernel.Cut{Matrix: c.Format, Columns: slices.Max(columns), Chunk: chunk, Warps: c.rows[Warps].Default}
	most := cut.DigitBytes()
	for _, f := range c.Model.Facts() {
		cut.Columns, cut.Sums = f.Intermediate, f.PerToken
		most = max(most, cut.DigitBytes())
	}
	return most
}

// scratch is that of the SM that owns most of the residual, in grains of gemv.rows, if it is distributed evenly, or of
// one that keeps more of it.
func (c *Case) scratch(of func(*ir.Model, bool, kernel.Kept, ...int) kernel.Scratch) kernel.Scratch {
	m, t, rows := c.Model, c.Target, c.Of(GrainRows)
	kept := c.Kept
	kept.Rows = max(kept.Rows, (m.Hidden/rows/max(1, t.SMs)+1)*rows)
	return of(m, t.RunsOnTensorCores(m.Weights), kept, m.Columns()...)
}

// checkPace refuses a pace of requests that are never made.
func checkPace(c *Case) *diag.Diagnostic {
	usual := c.rows[Pace].Default
	switch {
	case c.Of(Pace) == usual:
	case c.Target != nil && !c.Target.BulkCopy:
		return c.idle(Pace, "%s has no bulk copies, and nothing runs ahead without them; want %d", c.Target.Name, usual)
	case c.Of(RunAhead) == 0 && c.Of(LongRunAhead) == 0:
		return c.idle(Pace, "ring.run_ahead is 0; want ring.run_ahead above 0, or %d", usual)
	}
	return nil
}

// checkStock refuses a stock, and chunks in flight with it, that something else switches off.
func checkStock(c *Case) *diag.Diagnostic {
	stock, stocked, depth := c.Of(Stock), c.Of(InFlightStocked), c.Of(InFlight)
	switch {
	case stock > 0 && c.Target != nil && !c.Target.BulkCopy:
		return c.idle(Stock, "%s has no bulk copies, which alone are counted one by one; want 0", c.Target.Name)
	case stock > 0 && depth == 1:
		return c.idle(Stock, "one chunk is in flight anyway; want more by ring.in_flight, or 0")
	case stock > 0 && stocked >= depth:
		return c.idle(InFlightStocked, "%d chunks are in flight anyway; want less, or ring.stock 0", depth)
	case stock == 0 && stocked > 1 && c.Of(LongStock) == 0 && !c.Given(Stock):
		return c.idle(InFlightStocked, "with it ring.stock is 0 by default; want ring.stock above 0 with it, or 1")
	case stock == 0 && stocked > 1 && c.Of(LongStock) == 0:
		return c.idle(InFlightStocked, "ring.stock is 0; want ring.stock above 0, or 1")
	}
	return nil
}

// checkShared holds the shared memory of a block to what the target has.
func checkShared(c *Case) *diag.Diagnostic {
	if n := c.Of(SharedBytes); c.Target != nil && n > c.Target.SMemOptin {
		return c.refuseShared(
			"%d; want 1 to %d bytes, which is what a block of the target has, or 0 for all of them", n,
			c.Target.SMemOptin)
	}
	return nil
}

// checkRing holds the chunks in flight, and one more, to the shared memory of a block.
func checkRing(c *Case) *diag.Diagnostic {
	shared, chunks, chunk := c.Of(SharedBytes), c.Of(InFlight)+1, c.Of(ChunkBytes)
	limit := shared
	if c.Target != nil {
		limit = c.Target.SMemOptin
	}
	need := chunks * chunk
	if shared >= need || shared > limit || shared == 0 && c.Target == nil {
		return nil
	}
	want := "want fewer chunks in flight, or smaller ones"
	if need <= limit {
		want = fmt.Sprintf("want at least %d, or fewer or smaller chunks", need)
	}
	return c.refuseShared("%d bytes cannot hold a ring of %d chunks of %d bytes; %s", shared, chunks, chunk, want)
}

func (c *Case) refuseShared(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(codeShared, where(c.rows[SharedBytes].Path("")), format, args...)
}

// splitFromOfPasses lets a build with passes of several sequences have one variant: their positions are independent,
// and a pass has no variant for some of them and another for others (docs/passes.md). So does one where no pass of as
// many rows as there are would fit from the usual position on.
func splitFromOfPasses(c *Case, _ string) int {
	usual, left := c.rows[SplitFrom].Default, c.Model.MaxSeq-c.rows[SplitFrom].Default
	switch {
	case c.Most.NumSequences() > 1:
		return 0
	case 0 < left && left < c.Most.NumRows():
		return c.Model.MaxSeq
	}
	return usual
}

func qkvRows(f *ir.LayerFacts) int { return f.QueryRows() + 2*f.KeyRows() }

// splitsOfContext are few where more would cost more than they save, and where passes take several sequences at most
// one for each SM and pass: more would be taken one after another, and each joined.
func splitsOfContext(c *Case, _ string) int {
	usual := c.rows[MaxSplits].Default
	switch {
	case c.Most.NumSequences() > 1 && c.Target != nil:
		return max(1, min(usual, c.Target.SMs/max(1, c.Most.NumSequences()*c.Model.Most(ir.KVHeadsOf))))
	case c.Most.NumSequences() > 1 || growingSplits(c) == 0:
		return usual
	case middleUntil(c)+ir.MaxRows <= c.Model.MaxSeq:
		return growingSplits(c)
	}
	return growingSplits(c) / 2
}

// splitsOfMiddle are half of those beyond, where a pass of any size fits both before those and from there on.
func splitsOfMiddle(c *Case, _ string) int {
	if n, is := c.rows[MiddleUntil].Stated(c.given, ""); is && n == 0 {
		return 0
	}
	few, most, from, until := growingSplits(c)/2, c.Of(MaxSplits), c.Of(SplitFrom), middleUntil(c)
	if c.Target != nil {
		most = min(most, c.Target.SMs/max(1, c.Model.Most(ir.KVHeadsOf)))
	}
	if few == 0 || 2*few > most || from == 0 || until-from < ir.MaxRows || until+ir.MaxRows > c.Model.MaxSeq {
		return 0
	}
	return few
}

// endOfMiddle is where the splits of long contexts begin, if those before them are fewer.
func endOfMiddle(c *Case, _ string) int {
	if c.Of(MiddleSplits) == 0 {
		return 0
	}
	return middleUntil(c)
}

// growingSplits are the splits of a long context where a shorter one has half of them; 0: all that are split have as
// many. Measured with 2 to 8 kv heads, in passes of one row, on GPUs with SMs for all of these splits
// (docs/results/campaigns.md). Layers with windows read no more rows at any position.
func growingSplits(c *Case) int {
	splits, heads := 32, c.Model.Most(ir.KVHeadsOf)
	if heads > 4 {
		splits = 16
	}
	if c.Most.NumSequences() > 1 || c.Most.NumRows() > 1 || c.Windows || heads > 8 ||
		c.Target != nil && c.Target.SMs < heads*splits {
		return 0
	}
	return splits
}

// middleUntil is what the configuration says, or the position at which each of few splits has 64 Ki elements of the
// cache, 128 KiB in 16 bits, but no position beyond those that were measured. To join twice as many splits takes longer
// the more elements heads have.
func middleUntil(c *Case) int {
	const share, elements, step, usual = 64 << 10, 2048, 512, 4096
	if n, is := c.rows[MiddleUntil].Stated(c.given, ""); is && n > 0 && c.rows[MiddleUntil].Legal.Has(n) {
		return n
	}
	m, few, last := c.Model, growingSplits(c)/2, usual
	switch few {
	case 0:
		return usual
	case 16:
		last = 2 * usual
	}
	joined := max(elements, min(2*elements, m.Most((*ir.LayerFacts).QueryRows)))
	rows := share / elements * joined / max(1, 2*m.Most(ir.HeadDimOf))
	return min(last, max(step, few*rows/step*step))
}
