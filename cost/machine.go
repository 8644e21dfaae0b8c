package cost

import (
	"fmt"
	"math"
	"math/bits"

	"amkc/ir"
	"amkc/kernel"
	"amkc/knobs"
)

// A machine is a target with the ring that a program's configuration gives it. Times are microseconds, speeds bytes a
// microsecond.
type machine struct {
	sms     int
	clock   float64 // cycles a microsecond
	read    float64 // what memory delivers at most, to all SMs
	l2      float64 // what an SM gets out of L2
	drain   float64 // what an SM's consumers take
	tensor  bool    // products and attention are on tensor cores
	slots   int     // of the ring
	flagged bool
	// a line that was used a step ago is not in L2 any more
	coldLines bool
	latency   float64 // from asking for a chunk to its last byte, when nothing else is on its way
	feed      feed    // without its speeds
	fit       Calibration
	formats   FormatCalibration
	passes    *PassCalibration // nil: a step is predicted
	link      *Link            // nil: there is one GPU
}

// newMachine takes the mean size of the chunks that the program streams: small tiles leave most of a slot empty. The
// stream is that of the variant that begins at a position.
func newMachine(of *Model, first int, chunk float64, kept kernel.Kept) machine {
	p := of.program
	t, config, stream := p.Target, &p.Config, knobs.StreamOf(&p.Config, first)
	c, _ := chipOf(t.Name)
	m := machine{sms: t.SMs, clock: c.clock, read: c.read * t.HBMGBs * 1e3, tensor: tensor(p), fit: of.fit,
		formats: of.formats, passes: of.passes, link: of.link, slots: slots(p, kept), flagged: knobs.Flagged.Of(config)}
	m.l2 = max(l2Bytes*m.clock, 1.2*m.read/float64(m.sms))
	m.drain = drainTensor * m.clock
	if !m.tensor {
		// a weight once, and an activation of each token
		weight, tokens := float64(p.Model.Weights.Bits())/8, float64(p.Pass.NumTokens())
		block := kernel.Warps * plainRows * plainColumns * weight
		m.drain = block / m.formats.PlainBlock * m.clock * (weight + 4) / (weight + 4*tokens)
	}
	f := feed{capacity: float64(m.slots) * chunk, chunk: chunk, flight: chunk,
		window: min(max(1, knobs.InFlight.Of(config)), m.slots)}
	switch {
	case t.BulkCopy:
		f.ahead = float64(max(0, stream.RunAhead)) * chunk
		f.pace = chunk * m.clock / float64(max(1, stream.Pace)) // bytes per microsecond
		if stock := stream.Stock; 0 < stock && stock < m.slots {
			f.stock, f.least = stock, min(max(1, knobs.InFlightStocked.Of(config)), f.window)
		}
	case !t.AsyncCopy:
		f.flight = plainInFlight(chunk) / float64(f.window)
	}
	m.latency = memoryLatency + chunk/chunkSpeed
	m.read /= 1 + f.readTwice(t)
	m.feed = f
	return m
}

// readTwice is the part of the stream that has to be read again: with a stock, the prefetcher is as far ahead as it may
// be most of the time, and where L2 cannot hold that much, chunks are gone before the ring comes to them.
func (f *feed) readTwice(t *ir.Target) float64 {
	asked, held := f.ahead*float64(t.SMs), heldAhead*float64(t.L2Bytes)
	if f.stock == 0 || held == 0 || asked <= held {
		return 0
	}
	return 1 - held/asked
}

// plainInFlight is what a producer warp that loads and stores has on its way: the bytes of a chunk divided among the
// rounds that they take, of 16, 8, 4, 2 and 1 loads of 16 bytes per lane.
func plainInFlight(chunk float64) float64 {
	loads := max(1, int(math.Ceil(chunk/(32*16))))
	return chunk / float64(loads/16+bits.OnesCount(uint(loads%16)))
}

// inFlight is the bytes that an SM has on their way at most.
func (m *machine) inFlight() float64 { return float64(m.feed.window) * m.feed.flight }

// bandwidth is what all SMs read together with n bytes in flight each.
func (m *machine) bandwidth(inFlight float64) float64 {
	return m.deliver(inFlight, m.latency, m.read)
}

// deliver is as many bytes as all SMs have in flight for each latency, up to what can be delivered at most.
func (m *machine) deliver(inFlight, latency, most float64) float64 {
	x := float64(m.sms) * inFlight / latency / most
	return most * x / math.Pow(1+math.Pow(x, knee), 1.0/knee)
}

// A share is what an SM gets of the memory, in bytes a microsecond, of an even part and what its bytes in flight fetch
// where no other SM streams.
type share func(even, alone float64) float64

// A phase is a part of what an SM streams in a step, and how many SMs have as much or more to stream.
type phase struct{ bytes, sms float64 }

// withOthers is the share of an SM of which a step's stream has such phases. SMs that have less to stream leave the
// memory to the others once they have it, of whom each gets what its bytes in flight fetch at most.
func withOthers(sms float64, phases []phase) share {
	return func(even, alone float64) float64 {
		alone = min(max(alone, even), maxShare*even)
		bytes, time := 0.0, 0.0
		for _, p := range phases {
			bytes += p.bytes
			time += p.bytes / min(alone, even*sms/p.sms)
		}
		if time == 0 {
			return even
		}
		return bytes / time
	}
}

// whileOthersWait is the share of an SM that has n times an even part, since the rings of the others are full.
func whileOthersWait(times float64) share {
	return func(even, alone float64) float64 { return min(even*times, alone) }
}

// feedOf is the feed of the ring of an SM that has such a share.
func (m *machine) feedOf(of share) *feed {
	f := m.feed
	f.restart = m.latency
	for n := range f.window + 1 {
		bytes := float64(n) * f.flight
		most := f.chunk / producerChunk
		even := m.bandwidth(bytes) / float64(m.sms)
		f.memory = append(f.memory, max(1, min(of(even, bytes/m.latency), most)))
		f.l2 = append(f.l2, max(1, min(m.deliver(bytes, l2Chunk, m.l2*float64(m.sms))/float64(m.sms), most)))
	}
	return &f
}

// queue is how long memory and L2 take for what is in flight from them: what the slowest load waits behind.
func (m *machine) queue(memory, l2 float64) float64 { return memory/m.read + l2/(m.l2*float64(m.sms)) }

// instructions is the time of straight-line code.
func (m *machine) instructions(n float64) float64 { return n * instructionCycles / m.clock }

// tensor reports whether the program's products run on tensor cores.
func tensor(p *ir.Program) bool { return p.Target.RunsOnTensorCores(p.Model.Weights) }

// slots is how many chunks fit alongside the scratch that stages keep in shared memory.
func slots(p *ir.Program, kept kernel.Kept) int {
	m, shared := &p.Model, knobs.BlockBytes(&p.Config, p.Target)
	slot := max(1, knobs.ChunkBytes.Of(&p.Config))
	scratch := kernel.ScratchIn(shared, slot, m, tensor(p), kept, m.Columns()...)
	return max(1, scratch.Slots(shared, slot))
}

// assumptions says in sentences what the prediction takes for granted on this target.
func (m *machine) assumptions(p *ir.Program, weights float64) []string {
	t := p.Target
	c, known := chipOf(t.Name)
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if !c.held {
		say("memory reads at %.0f %% of the data sheet's %g GB/s", 100*c.read, t.HBMGBs)
	}
	switch {
	case !known:
		say("the clock is not known; taken to be %.0f MHz", c.clock)
	case t.Name != CalibratedOn:
		say("clock of the data sheet, %.0f MHz", c.clock)
	}
	if t.Name != CalibratedOn {
		say("latencies of memory, L2 and exchanges, and the instructions of a stage, are those of the H200")
	}
	switch {
	case !t.AsyncCopy:
		say("no cp.async: a producer warp loads and stores, with %.0f bytes in flight and nothing ahead in L2",
			m.inFlight())
	case !t.BulkCopy:
		say("no bulk copies: a producer warp copies by cp.async, %.0f bytes in flight, and nothing runs ahead into L2",
			m.inFlight())
	}
	switch {
	case !t.TensorCores:
		say("no mma.m16n8k16: products on the ordinary units, as fast as those of fp32 are on the H200 (estimated)")
	case !m.tensor:
		say("fp32: products on the ordinary units")
	}
	if usesHalves(p) {
		say("fp8: products as fast as those of 16-bit elements (no row of results has any)")
	}
	if m.link != nil {
		say("%d GPUs, one of which is predicted, exchange as two and four H200 did; a build for several was never run",
			m.link.GPUs)
	}
	if t.HBMBytes > 0 && weights > float64(t.HBMBytes) {
		say("the weights (%.1f GB) do not fit its memory (%.1f GB)", weights/1e9, float64(t.HBMBytes)/1e9)
	}
	return out
}
