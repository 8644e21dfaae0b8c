package simulate

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// The reductions change no verdict: with everything interleaved, or with a cell for every byte, it is the same. A
// program that is too large for that is left out, and there are few. AMKC_LONG tries more of them.
func TestReductionsChangeNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	seeds := 100
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 1500
	}
	fp := NewFootprints()
	for _, c := range []struct {
		program func(seed uint64, most int) *ir.Flat
		tasks   int
		differ  Options
		safe    int // one of how many is, at least
	}{
		{randomFlat, 3, Options{Full: true, MaxStates: 50_000}, 8},
		{randomFlat, 4, Options{Full: true, MaxStates: 50_000}, 8},
		{randomFlat, 5, Options{Full: true, MaxStates: 50_000}, 8},
		{randomFlat, 4, Options{Bytes: true}, 8},
		{randomFlat, 6, Options{Bytes: true}, 8},
		{copiedFlat, 4, Options{Full: true, MaxStates: 50_000}, 15},
		{copiedFlat, 5, Options{Bytes: true}, 15},
		{manyProducers, 3, Options{Full: true, MaxStates: 50_000}, 15},
		{manyProducers, 4, Options{Full: true, MaxStates: 50_000}, 15},
		{manyProducers, 4, Options{Bytes: true, MaxStates: 20_000}, 15},
	} {
		unsafe, safe, left := 0, 0, 0
		for seed := range uint64(seeds) {
			runs := []Run{{Flat: c.program(seed, c.tasks), Pos: 0}}
			v := Explore(runs, fp, Options{})
			require.True(t, v.Complete)
			w := Explore(runs, fp, c.differ)
			switch {
			case !w.Complete:
				left++
				continue
			case v.Unsafe():
				unsafe++
			default:
				safe++
			}
			require.Equal(t, w.Unsafe(), v.Unsafe(), "%d tasks, seed %d: %v, otherwise %v", c.tasks, seed, v.Hazard,
				w.Hazard)
		}
		t.Log(c.tasks, "tasks:", safe, "safe,", unsafe, "unsafe,", left, "left out")
		require.Greater(t, safe, seeds/c.safe)
		require.Greater(t, unsafe, seeds/8)
		require.Less(t, left, seeds/15)
	}
}

// What exploring finds, sampling mostly finds too; what it finds, exploring finds.
func TestSamplingAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	fp := NewFootprints()
	both, missed := 0, 0
	for seed := range uint64(2000) {
		runs := []Run{{Flat: randomFlat(seed, 6), Pos: 0}}
		v, s := Explore(runs, fp, Options{}), Sample(runs, fp, Options{}, seed, 60)
		require.True(t, v.Unsafe() || !s.Unsafe(), "seed %d: %v", seed, s.Hazard)
		if s.Unsafe() {
			both++
		} else if v.Unsafe() {
			missed++
		}
	}
	t.Log(both, "found by both,", missed, "missed by sampling")
	require.Less(t, 20*missed, both)
}
