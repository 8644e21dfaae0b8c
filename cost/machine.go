package cost

import (
	"fmt"
	"math"
	"math/bits"

	"amkc/ir"
)

// A machine is a target with the ring that a program's configuration gives it. Times are microseconds, speeds bytes a microsecond.
type machine struct {
	sms      int
	clock    float64 // cycles a microsecond
	read     float64 // what memory delivers at most, to all SMs
	l2       float64 // what an SM gets out of L2
	drain    float64 // what an SM's consumers take
	slots    int     // of the ring
	inFlight float64 // bytes that an SM has on their way
	ahead    float64 // bytes that may wait for it in L2
	chunk    float64 // mean bytes of a chunk
	flagged  bool
	fit      Calibration
}

// newMachine takes the mean size of the chunks that the program streams: small tiles leave most of a slot empty.
func newMachine(p *ir.Program, fit Calibration, chunk float64, rows int) machine {
	t, c := p.Target, chipOf(p.Target.Name)
	m := machine{sms: t.SMs, clock: c.clock, read: c.read * t.HBMGBs * 1e3, chunk: chunk, fit: fit,
		slots: slots(p, rows), flagged: p.Config.Knob("exchange", "flagged", 1) != 0}
	m.l2 = max(l2Bytes*m.clock, 1.2*m.read/float64(m.sms))
	switch {
	case tensor(p):
		m.drain = drainTensor * m.clock
	case p.Model.DType.Bits() == 32:
		m.drain = drainFMA32 * m.clock
	default:
		m.drain = drainFMA16 * m.clock
	}
	depth := float64(min(max(1, p.Config.PipeliningDepth), m.slots))
	switch {
	case t.BulkCopy:
		m.inFlight, m.ahead = depth*chunk, float64(p.Config.Knob("ring", "run_ahead", 8))*chunk
	case t.AsyncCopy:
		m.inFlight = depth * chunk
	default:
		m.inFlight = plainInFlight(chunk)
	}
	return m
}

// plainInFlight is what a producer warp that loads and stores has on its way: the bytes of a chunk divided among the rounds that they
// take, of 16, 8, 4, 2 and 1 loads of 16 bytes a lane.
func plainInFlight(chunk float64) float64 {
	loads := max(1, int(math.Ceil(chunk/(32*16))))
	return chunk / float64(loads/16+bits.OnesCount(uint(loads%16)))
}

// bandwidth is what all SMs read together: as many bytes as they have in flight for each latency, up to what memory delivers.
func (m *machine) bandwidth() float64 {
	x := float64(m.sms) * m.inFlight / memoryLatency / m.read
	return m.read * x / math.Pow(1+math.Pow(x, knee), 1.0/knee)
}

// queue is how long memory takes for everything that is in flight: what the slowest load waits behind.
func (m *machine) queue() float64 { return float64(m.sms) * m.inFlight / m.read }

// instructions is the time of straight-line code.
func (m *machine) instructions(n float64) float64 { return n * fetch / m.clock }

// tensor reports whether the program's products run on tensor cores.
func tensor(p *ir.Program) bool { return p.Target.RunsOnTensorCores(p.Model.DType) }

// slots is how many chunks fit beside the scratch that stages keep in shared memory, where an SM owns so many rows of the residual.
func slots(p *ir.Program, rows int) int {
	shared := p.Config.SMemBytesPerBlock
	if shared == 0 {
		shared = p.Target.SMemOptin
	}
	m := &p.Model
	scratch := ir.ScratchOf(m, tensor(p), rows, m.Hidden, m.Heads*m.HeadDim, m.Intermediate)
	return max(1, scratch.Slots(shared, max(1, p.Config.Knob("ring", "chunk_bytes", 16384))))
}

// assumptions says in sentences what the prediction takes for granted on this target.
func (m *machine) assumptions(p *ir.Program, weights float64) []string {
	t, c := p.Target, chipOf(p.Target.Name)
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if p.Config.Knob("ring", "stock", 0) > 0 || p.Config.Knob("ring", "run_ahead_always", 0) > 0 {
		say("in_flight chunks on their way whatever the ring holds, and run-ahead while it is full: ring.stock and ring.run_ahead_always are left out")
	}
	if t.Name != measuredChip {
		say("memory reads at %.0f %% of the data sheet's %.0f GB/s", 100*c.read, t.HBMGBs)
		if c.name == "" {
			say("the clock is not known; taken to be %.0f MHz", c.clock)
		} else {
			say("clock of the data sheet, %.0f MHz", c.clock)
		}
		say("latencies of memory, L2 and exchanges, and the instructions of a stage, are those of the H200")
	}
	switch {
	case !t.AsyncCopy:
		say("no cp.async: a producer warp loads and stores, with %.0f bytes in flight and nothing ahead in L2", m.inFlight)
	case !t.BulkCopy:
		say("no bulk copies: a producer warp copies by cp.async, %.0f bytes in flight, and nothing runs ahead into L2", m.inFlight)
	}
	if !tensor(p) {
		why := "fp32"
		if !t.TensorCores {
			why = "no mma.m16n8k16"
		}
		say("%s: products on the ordinary units, at %.0f bytes a cycle (estimated)", why, m.drain/m.clock)
	}
	if t.HBMBytes > 0 && weights > float64(t.HBMBytes) {
		say("the weights (%.1f GB) do not fit its memory (%.1f GB)", weights/1e9, float64(t.HBMBytes)/1e9)
	}
	return out
}
