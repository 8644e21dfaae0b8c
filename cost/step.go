package cost

import (
	"math"
	"slices"

	"amkc/kernel"
)

// Parts of a step's time, in microseconds, as the mean SM spends it. They add up to the step.
type Parts struct {
	Instructions float64 `json:"instructions_us"` // code before and after the products
	Exchange     float64 `json:"exchange_us"`     // until the vector is there
	Stream       float64 `json:"stream_us"`       // until the bytes are there, and out of the ring
}

// add adds so much of the parts of a task.
func (p *Parts) add(of Parts, much float64) {
	p.Instructions += of.Instructions * much
	p.Exchange += of.Exchange * much
	p.Stream += of.Stream * much
}

// Total is the time of all parts.
func (p Parts) Total() float64 { return p.Instructions + p.Exchange + p.Stream }

// A mode is what of a step runs: all of it, the ceiling, which waits for no words, or the drain, whose bytes are
// all there.
type mode struct{ waits, streams bool }

var (
	decode  = mode{waits: true, streams: true}
	ceiling = mode{streams: true}
	drained = mode{waits: true}
)

// A run is a step under way.
type run struct {
	*plan
	*machine
	mode
	at         []float64 // when each SM is done with what it has done
	rings      []ring
	posted     []float64 // when the last writer of a counter's vector published
	writers    []float64
	parts      []Parts   // of each stage
	slowest    []float64 // of each stage
	end        float64   // the step's end, as the mean SM spends it
	feedsOfFew map[int]*feed
}

// warmUp is how many steps run before the one that counts: the ring is as full as in a long launch.
const warmUp = 2

// outcome is a step in the middle of a launch.
type outcome struct {
	time    float64
	parts   []Parts
	slowest []float64
	end     float64
	halted  float64 // microseconds in which a mean SM's ring was full, and its stream stood still
}

func (p *plan) run(m *machine, of mode) outcome {
	r := &run{plan: p, machine: m, mode: of, at: make([]float64, m.sms), rings: make([]ring, m.sms),
		posted: make([]float64, p.counters), writers: make([]float64, p.counters), parts: make([]Parts, len(p.stages)),
		slowest: make([]float64, len(p.stages)), feedsOfFew: map[int]*feed{}}
	feeds := p.feeds(m)
	for sm := range r.rings {
		r.rings[sm].feed = feeds[p.load[sm]]
	}
	for range warmUp {
		r.step()
	}
	from, halted := slices.Max(r.at), r.halted()
	clear(r.parts)
	clear(r.slowest)
	r.end = 0
	r.step()
	return outcome{slices.Max(r.at) - from, r.parts, r.slowest, r.end, r.halted() - halted}
}

// feeds are the feeds of SMs that stream n bytes in a step.
func (p *plan) feeds(m *machine) map[float64]*feed {
	out := map[float64]*feed{}
	var phases []phase
	before := -1.0
	for n, load := range slices.Sorted(slices.Values(p.load)) {
		if load > before {
			phases = append(phases, phase{load - max(0, before), float64(m.sms - n)})
			out[load] = m.feedOf(withOthers(float64(m.sms), phases))
			before = load
		}
	}
	return out
}

// times is how many times as much as the mean SM one streams that has the given bytes in a step; 1 at least.
func (p *plan) times(bytes float64) float64 {
	return max(1, float64(len(p.load))*bytes/max(1, p.bytes))
}

func (r *run) halted() float64 {
	sum := 0.0
	for sm := range r.rings {
		sum += r.rings[sm].idle
	}
	return sum / float64(r.sms)
}

// step runs every stage once. It ends in a join of all SMs.
func (r *run) step() {
	clear(r.posted)
	for i := range r.steps {
		r.instance(&r.steps[i])
	}
	if !r.waits {
		return
	}
	end := slices.Max(r.at)
	end += join + 2*r.tail(end)
	if r.link != nil { // of all GPUs
		end += r.link.Latency
	}
	for sm := range r.at {
		r.end += (end - r.at[sm]) / float64(r.sms)
		r.at[sm] = end
	}
}

// tail is how much longer words take at a time, if many wait for many: a part of what memory and L2 need for all
// bytes in flight.
func (r *run) tail(t float64) float64 {
	if !r.streams {
		return 0
	}
	memory, l2 := 0.0, 0.0
	for sm := range r.rings {
		ring := r.rings[sm]
		ring.until(t)
		m, l := ring.loads()
		memory, l2 = memory+m, l2+l
	}
	return r.fit.Tail * r.queue(memory, l2)
}

// instance runs the tasks of one stage in one iteration.
func (r *run) instance(in *instance) {
	s, part := r.stages[in.stage], &r.parts[in.stage]
	ready, waits := r.ready(in)
	published, mean := 0.0, 1/float64(r.sms)
	handed, slowest := r.handed(in), 0.0
	share := r.memoryShareOf(in)
	for k, sm := range in.sms {
		t, begun := &s.tasks[k], max(r.at[sm], handed)
		if t.gemm.sets > 0 {
			at, late, took := r.multiply(s, t, sm, ready, waits)
			r.at[sm] = at
			published = max(published, at+late)
			slowest = max(slowest, at+late-begun)
			part.add(took, mean)
			continue
		}
		before, first, after, busy := r.work(s, t)
		arrived := r.at[sm] + before
		vector := arrived
		if t.polled > 0 {
			vector += l2Latency + t.polled/r.l2
		}
		if waits {
			vector = max(vector, ready+rereads*t.polled/r.l2)
		}
		if in.halts && r.waits {
			r.rings[sm].empty(vector)
		}
		done, late := vector+first+busy, 0.0
		if t.streamed > 0 && r.streams {
			ring := &r.rings[sm]
			done = share.take(ring, vector+first, t.streamed, t.streamed/busy, t.worked)
			if r.waits {
				late = ring.late(r.fit.Uneven)
			}
		}
		r.at[sm] = done + after
		published = max(published, r.at[sm]+late)
		slowest = max(slowest, r.at[sm]+late-begun)
		part.add(Parts{before + first + after, vector - arrived, done - vector - first}, mean)
	}
	r.slowest[in.stage] += slowest
	if in.signal >= 0 {
		r.posted[in.signal] = max(r.posted[in.signal], published)
		r.writers[in.signal] = float64(len(in.sms))
	}
}

// handed is when the last of the vectors that an instance waits for was published. Until then an SM that is there waits
// for a stage before, and not for anything in this one.
func (r *run) handed(in *instance) (at float64) {
	for _, c := range in.waits {
		at = max(at, r.posted[c])
	}
	return at
}

// ready is when the vectors that an instance waits for are with all of their readers: after the slowest of those who
// write what a task reads, after what memory and L2 have in flight.
func (r *run) ready(in *instance) (at float64, waits bool) {
	if !r.waits || len(in.waits) == 0 {
		return 0, false
	}
	at = r.handed(in)
	writers := 1.0
	for _, c := range in.waits {
		writers = max(writers, r.writers[c])
	}
	s := r.stages[in.stage]
	if len(s.tasks) > 0 {
		writers = max(1, writers*s.tasks[0].share)
	}
	// The tail of the memory's latency is met by who looks often enough: with all SMs writing, it is.
	if r.coldLines && len(s.tasks) > 0 && s.tasks[0].apart {
		at += coldLine
	}
	tail := r.tail(at) * min(1, math.Log1p(writers)/math.Log1p(float64(r.sms)))
	if bytes := s.pushed(); bytes > 0 && r.link != nil {
		at += r.link.arrives(bytes)
	} else {
		at += oneWay
	}
	at += r.fit.Spread*math.Log(writers) + tail
	switch {
	case !r.flagged: // who combines splits waits for one counter too, and not for words of all of them
		at += counterHop
	case s.body.Polls > 0:
		split := splitJoined + splitElement*float64(s.queries) // for one more
		at += max(0, r.fit.Partials+split*float64(s.splits()-measuredSplits))
	}
	if s.body.Polls > 0 {
		at += tail
	}
	return at, true
}

// rounds is how many rounds the warps of an attention unit take for n blocks of cache rows, a block per warp and
// round; with none there is the step's own row still. Two warps share a scheduler. A last round with no more blocks
// than there are schedulers is taken to be half a round: assumed, because drains come out nearer
// (docs/cost-model.md).
func rounds(blocks float64) float64 {
	const schedulers = 4
	whole := math.Floor(blocks / kernel.Warps)
	switch left := blocks - whole*kernel.Warps; {
	case left > schedulers:
		return whole + 1
	case left > 0 || whole == 0:
		return whole + 0.5
	}
	return whole
}

// work is what a task does: straight-line code before its vector is looked for, up to the first product and after the
// last, and the time of the products with every byte in the ring. Where tokens go by one after another, the vectors of
// those after the first are read after the last product of the one before.
func (r *run) work(s *stage, t *task) (before, first, after, busy float64) {
	switch {
	case s.body.Streams == kernel.Tiles:
		if !r.tensor {
			before, first, after = r.fit.StageCode, r.formats.PlainStage/instructionCycles, r.fit.StageCode
			busy = (float64(t.rounds)*r.formats.PlainBlock + float64(t.tiles)*tileCycles) / r.clock
			break
		}
		quads := r.fit.MatrixQuad / 2 * float64(t.quads)
		before, first, after = r.fit.StageCode+quads, firstCode+quads, r.fit.StageCode
		if t.ragged {
			first += r.fit.Ragged
		}
		turns := math.Ceil(float64(t.tiles*s.warps) / kernel.Warps)
		busy = t.streamed / r.drain
		if t.batches > 0 {
			first += r.digits(t) / instructionCycles
			busy = max(busy, turns*r.integers(t)/r.clock)
		}
		busy += turns * tileCycles / r.clock
	case s.body.Streams == kernel.CacheRows:
		before, after = r.fit.StageCode, r.fit.StageCode
		busy = (r.fit.UnitCycles*float64(t.passes) + r.cacheRows(t)) / r.clock
	case s.body.Begins:
		before, busy = r.fit.StageCode, r.latency
	case s.body.Brief:
	default:
		before, after = r.fit.StageCode, r.fit.StageCode
	}
	before, first, after = r.instructions(before), r.instructions(first), r.instructions(after)
	if t.turns > 1 {
		after += float64(t.turns-1) * (l2Latency + first + after)
	}
	return before, first, after, busy
}

// cacheRows is the cycles that a unit of attention takes for its blocks of cache rows.
func (r *run) cacheRows(t *task) float64 {
	if !r.tensor { // a warp's own blocks, one after the other
		return math.Ceil(t.blocks/kernel.Warps) * r.formats.PlainHead * float64(t.fragments*t.heads)
	}
	return rounds(t.blocks) * (roundCycles + fragmentCycles*float64(t.fragments))
}

// digits is the cycles in which a warp makes integers of its activations, and integers those in which it multiplies the
// quads of a tile by them.
func (r *run) digits(t *task) float64 {
	each := r.formats.VectorQuad
	if t.offset {
		each += offsetCycles
	}
	return each * float64(t.quads)
}

func (r *run) integers(t *task) float64 {
	return float64(t.quads)*r.formats.ProductQuad + float64(t.batches)*r.formats.ProductBatch
}
