package cost

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// testRing fills at 10 bytes per microsecond, 100 bytes at most, and 40 more in L2, which gives them at 20.
func testRing() ring {
	return ring{feed: &feed{capacity: 100, chunk: 10, flight: 10, window: 1, memory: []float64{1, 10},
		l2: []float64{1, 20}, ahead: 40, pace: 10, restart: 1}}
}

// stocked has three chunks in flight, and one while it holds six: at 10, 8 and 4 bytes per microsecond.
func stocked() ring {
	return ring{feed: &feed{capacity: 100, chunk: 10, flight: 10, window: 3, stock: 6, least: 1,
		memory: []float64{1, 4, 8, 10}, l2: []float64{1, 20, 20, 20}, restart: 1}}
}

func TestRingFillsWhileNothingIsTaken(t *testing.T) {
	r := testRing()
	r.until(4)
	require.InDelta(t, 40, r.level, 1e-9)
	r.until(9.9)
	require.False(t, r.full())
	r.until(12)
	require.True(t, r.full())
	require.InDelta(t, 100, r.level, 1e-9)
	require.InDelta(t, 2, r.idle, 1e-9, "the stream stands still with a full ring")
	require.InDelta(t, 20, r.cached, 1e-9, "and memory goes on into L2")
	r.until(100)
	require.InDelta(t, 40, r.cached, 1e-9, "as far as the run-ahead says")
}

func TestRingBoundsWhatTakes(t *testing.T) {
	r := testRing()
	require.InDelta(t, 3, r.take(0, 30, 1000, 0), 1e-9, "an empty ring gives what arrives")
	require.InDelta(t, 0, r.level, 1e-9)

	r = testRing()
	r.until(10)
	require.InDelta(t, 11, r.take(10, 50, 50, 0), 1e-9, "a full one what the consumers can take")

	// 100 bytes are there, 20 more wait in L2: they come a restart later, and the last 10 at the speed of memory.
	r = testRing()
	r.until(12)
	require.InDelta(t, 12+1+20.0/20+10.0/10, r.take(12, 130, 1000, 0), 1e-9)
}

func TestRingKeepsItsBytes(t *testing.T) {
	for name, r := range map[string]ring{"when full": testRing(), "stocked": stocked(),
		"stocked, and ahead": stockedAhead()} {
		now, taken := 0.0, 0.0
		for i := range 50 {
			bytes := float64(20 + i%7*30)
			now = r.take(now+float64(i%3), bytes, 80, float64(i%5*10))
			taken += bytes
			require.GreaterOrEqual(t, r.level, 0.0, name)
			require.LessOrEqual(t, r.level, 100.0, name)
			require.LessOrEqual(t, r.cached, r.asked+1e-9, name)
			require.LessOrEqual(t, r.asked, r.ahead+1e-9, name)
		}
		require.LessOrEqual(t, taken, 10*now+1, "%s: no more is taken than memory has sent", name)
	}
}

// Events may come arbitrarily close together; the simulation goes on all the same, at any setting.
func TestEveryTakeEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		window := 1 + random.IntN(16)
		f := &feed{chunk: []float64{16, 1000.5, 16384, 65536.25}[random.IntN(4)], window: window,
			least: 1 + random.IntN(window), stock: random.IntN(20),
			pace: 1e5 * random.Float64(), restart: random.Float64()}
		f.capacity, f.ahead, f.flight = f.chunk*float64(1+random.IntN(14)), f.chunk*float64(random.IntN(20)),
			f.chunk/float64(1+random.IntN(3))
		for i := range window + 1 {
			f.memory, f.l2 = append(f.memory, float64(i+1)*3000*random.Float64()+1), append(f.l2, float64(i+1)*3e4+1)
		}
		r := ring{feed: f}
		for range 30 {
			bytes, speed := f.chunk*float64(random.IntN(40))*random.Float64(), 1+2e5*random.Float64()
			end := r.take(r.now+3*random.Float64(), bytes, speed, f.chunk*float64(random.IntN(3)))
			require.False(t, math.IsNaN(end) || math.IsInf(end, 0))
			require.True(t, 0 <= r.level && r.level <= r.capacity && r.cached <= r.asked+negligible &&
				r.asked <= r.ahead+negligible, "%+v of %+v", r, *f)
		}
	}
}

func TestEmptiedRingStartsAnew(t *testing.T) {
	r := testRing()
	r.until(12)
	r.empty(12)
	require.InDelta(t, 12+1+3, r.take(12, 30, 1000, 0), 1e-9)
}

// TestStock: with three chunks held the stream slows down, and with five one chunk is in flight, so that the ring is
// full at 3 + 1.25 + 15 microseconds.
func TestStock(t *testing.T) {
	r := stocked()
	for level, want := range map[float64]int{0: 3, 30: 3, 30.1: 2, 40: 2, 41: 1, 100: 1} {
		require.Equal(t, want, r.inFlight(level), level)
	}
	r.until(19.2)
	require.False(t, r.full())
	r.until(19.3)
	require.True(t, r.full())

	// A reader of 6 bytes per microsecond finds the level at which two chunks in flight are too many and one is too
	// few.
	r = stocked()
	r.until(4.25)
	require.InDelta(t, 4.25+10, r.take(4.25, 60, 6, 0), 1e-9)
	require.InDelta(t, 40, r.level, 1e-9)

	r.worked = 50
	require.Equal(t, 1, r.inFlight(0), "what warps work on is in the ring")
}

// stockedAhead asks for 15 bytes per microsecond while it holds its stock; memory brings 10 of them.
func stockedAhead() ring {
	r := stocked()
	r.ahead, r.pace = 40, 15
	return r
}

// TestAsks: there is a stock once it is there but for the three chunks that are on their way; a ring at that edge is
// on its way up or down.
func TestAsks(t *testing.T) {
	r := stockedAhead()
	for level, want := range map[float64]bool{10: false, 19: false, 22: true, 90: true} {
		r.level = level
		require.Equal(t, want, r.asks(r.flows(6)), level)
	}
	r.level = 20
	require.True(t, r.asks(flows{in: 10, out: 6}))
	require.False(t, r.asks(flows{in: 10, out: 12}))

	r = testRing()
	r.level = 99
	require.False(t, r.asks(r.flows(0)), "no stock, and not full")
	r.level = 100
	require.True(t, r.asks(r.flows(0)))
	require.False(t, r.asks(r.flows(20)))
}

// TestLoads: what has been asked for and has not come is in flight in memory, and what comes from L2 is not.
func TestLoads(t *testing.T) {
	r := stockedAhead()
	r.until(4) // it asks from a level of 20 on, at 2
	memory, l2 := r.loads()
	require.InDelta(t, 2*(15-10)+r.restart*10, memory, 1e-6)
	require.InDelta(t, 20, l2, 1e-9)
	r.until(100)
	memory, l2 = r.loads()
	require.Zero(t, memory+l2, "a full ring with all that may wait in L2 there")

	r = testRing()
	r.until(4)
	memory, l2 = r.loads()
	require.Equal(t, []float64{10, 0}, []float64{memory, l2}, "the ring's own chunk")
	r.until(11)
	memory, _ = r.loads()
	require.InDelta(t, r.restart*10, memory, 1e-6, "what a full ring's prefetcher asks for")
}

func TestLate(t *testing.T) {
	r := testRing()
	r.until(50)
	require.Zero(t, r.late(1), "a full ring makes up for what comes late")
	now := r.take(50, 240, 1000, 0)
	require.Positive(t, r.late(1), "an empty one does not")
	require.Greater(t, r.late(2), r.late(1))
	r.until(now + 8)
	require.Zero(t, r.late(1))

	// 13 us after it was full, an empty ring that would be full again after 10; with 40 bytes in L2 after 14.
	for _, c := range []struct {
		ring ring
		want float64
	}{{testRing(), 10}, {stocked(), 10}, {stockedAhead(), 13}} {
		c.ring.now = 13
		n := c.ring.inFlight(c.ring.level)
		way := float64(n) * c.ring.flight / c.ring.memory[n]
		require.InDelta(t, math.Sqrt(c.want*way), c.ring.late(1), 1e-9)
	}
}

// What is asked for ahead beyond what L2 holds is read twice, if the prefetcher is that far ahead most of the time.
func TestWhatL2CannotHoldIsReadTwice(t *testing.T) {
	h100 := &ir.Target{SMs: 132, L2Bytes: 50 << 20}
	for _, c := range []struct {
		stock, chunks int
		want          float64
	}{{6, 8, 0}, {6, 16, 0.06}, {6, 64, 0.765}, {0, 64, 0}} {
		f := feed{stock: c.stock, ahead: float64(c.chunks) * 16384}
		require.InDelta(t, c.want, f.readTwice(h100), 0.005, "%+v", c)
	}
	require.Zero(t, (&feed{stock: 6, ahead: 1 << 30}).readTwice(&ir.Target{SMs: 132}), "nothing is known of L2")
}

// An SM with more than its part gets more once others have theirs, and never more than its bytes in flight fetch.
func TestShares(t *testing.T) {
	require.Equal(t, 20.0, withOthers(100, []phase{{50, 100}})(20, 60))
	one := withOthers(100, []phase{{100, 100}, {28, 1}})
	require.InDelta(t, 20*1.28/(1+0.28/1.75), one(20, 60), 1e-9)
	require.InDelta(t, 20*1.28/(1+0.28/1.2), one(20, 24), 1e-9, "few bytes in flight")
	require.InDelta(t, 20, one(20, 15), 1e-9, "latency bound")
	require.InDelta(t, 20*1.28/(1+0.28/1.25), withOthers(100, []phase{{100, 100}, {28, 80}})(20, 60), 1e-9, "many")
	require.Equal(t, 20.0, withOthers(100, []phase{{0, 100}})(20, 60), "streams nothing")
	require.Equal(t, 60.0, whileOthersWait(4)(20, 60))
	require.Equal(t, 40.0, whileOthersWait(2)(20, 60))
}
