package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A hazard of sampled orders is found again from its seed, in as many orders as it says, whatever was run before: also
// one that takes two orders to show, which are both there then.
func TestSeedsFindItAgain(t *testing.T) {
	which := program(t, on("0", "s", " x[0:2] = COPY(in[0:2])\n signal e")+on("1", "t",
		" x[0:2] = COPY(in[0:2])\n signal e")+on("-1", "u", " wait e >= 2\n out[0:2] = COPY(x[0:2])\n signal step"))
	programs := [][]Run{runsOf(unrolled(t, which), Effort{Positions: 1})[:1]}
	for seed := range uint64(150) {
		programs = append(programs, []Run{{Flat: randomFlat(seed, 8)}})
	}
	fp, kinds, late := NewFootprints(), map[Kind]int{}, 0
	for i, runs := range programs {
		for seed := range uint64(10) {
			v := Sample(runs, fp, Options{}, seed, 30)
			if v.Hazard == nil || v.Hazard.m == nil {
				continue
			}
			h := v.Hazard
			kinds[h.Kind]++
			if *h.Seed > seed {
				late++
			}
			require.Equal(t, seed+uint64(v.Orders), *h.Seed+uint64(h.Orders), "it shows in the last order")
			again := Sample(runs, fp, Options{}, *h.Seed, h.Orders).Hazard
			require.NotNil(t, again, "program %d, seed %d: %v", i, seed, h)
			require.Equal(t, h.String(), again.String(), "program %d, seed %d", i, seed)
			require.Equal(t, h.path, again.path)
			require.False(t, v.Explored)
			twoOrders(t, h)
		}
	}
	t.Log(kinds, late, "not in the first order")
	require.NotZero(t, kinds[WhichProducer])
	require.Greater(t, late, 20)

	v := Explore(programs[0], fp, Options{})
	require.False(t, v.Explored, "it stops at the hazard")
	require.True(t, v.Complete)
	require.Equal(t, WhichProducer, v.Hazard.Kind)
	require.Nil(t, v.Hazard.Seed)
	twoOrders(t, v.Hazard)
}

// twoOrders demands that a hazard that takes two orders to show has both, each with the other's writer.
func twoOrders(t *testing.T, h *Hazard) {
	if h.Kind != WhichProducer {
		require.Nil(t, h.Other)
		return
	}
	require.NotNil(t, h.Other)
	require.Equal(t, h.task, h.Other.task)
	require.NotEqual(t, h.other, h.Other.other, "the writers")
	one, two := h.Shrink(1<<20, nil).Script(), h.Other.Shrink(1<<20, nil).Script()
	require.NotEmpty(t, one.Steps)
	require.NotEmpty(t, two.Steps)
	require.NotEqual(t, one, two)
}
