package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// testRing fills at 10 bytes a microsecond, 100 bytes at most, and 40 more in L2.
func testRing() ring {
	return ring{capacity: 100, rate: 10, fast: 20, ahead: 40, restart: 1}
}

func TestRingFillsWhileNothingIsTaken(t *testing.T) {
	r := testRing()
	r.until(4)
	require.InDelta(t, 40, r.level, 1e-9)
	require.False(t, r.fullAt(9.9))
	require.True(t, r.fullAt(10))
	r.until(12)
	require.InDelta(t, 100, r.level, 1e-9)
	require.InDelta(t, 2, r.idle, 1e-9, "the stream stands still with a full ring")
	require.InDelta(t, 20, r.cached, 1e-9, "and memory goes on into L2")
	r.until(100)
	require.InDelta(t, 40, r.cached, 1e-9, "as far as the run-ahead says")
}

func TestRingBoundsWhatTakes(t *testing.T) {
	r := testRing()
	require.InDelta(t, 3, r.take(0, 30, 1000), 1e-9, "an empty ring gives what arrives")
	require.InDelta(t, 0, r.level, 1e-9)

	r = testRing()
	r.until(10)
	require.InDelta(t, 11, r.take(10, 50, 50), 1e-9, "a full one what the consumers can take")

	// 100 bytes are there, 20 more wait in L2: they come a restart later, and the last 10 at the speed of memory.
	r = testRing()
	r.until(12)
	require.InDelta(t, 12+1+20.0/20+10.0/10, r.take(12, 130, 1000), 1e-9)
}

func TestRingKeepsItsBytes(t *testing.T) {
	r := testRing()
	now, taken := 0.0, 0.0
	for i := range 50 {
		bytes := float64(20 + i%7*30)
		now = r.take(now+float64(i%3), bytes, 80)
		taken += bytes
		require.GreaterOrEqual(t, r.level, -1e-9)
		require.LessOrEqual(t, r.level, 100+1e-9)
	}
	require.LessOrEqual(t, taken, 10*now+100+40+1e-9, "no more is taken than has arrived")
}

func TestEmptiedRingStartsAnew(t *testing.T) {
	r := testRing()
	r.until(12)
	r.empty(12)
	require.InDelta(t, 12+1+3, r.take(12, 30, 1000), 1e-9)
}
