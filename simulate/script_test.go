package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A script of too many steps is the end of the whole one, and says how many steps it leaves out.
func TestLastSteps(t *testing.T) {
	fp, longest := NewFootprints(), 0
	for seed := range uint64(40) {
		h := Sample([]Run{{Flat: randomFlat(seed, 8)}}, fp, Options{}, seed, 30).Hazard
		if h == nil || h.m == nil {
			continue
		}
		whole, before := h.m.steps(h.path, maxSteps)
		require.Zero(t, before)
		longest = max(longest, len(whole))
		for most := range len(whole) + 2 {
			last, before := h.m.steps(h.path, most)
			require.Equal(t, max(0, len(whole)-most), before)
			require.Len(t, last, len(whole)-before)
			for i := range last {
				require.Equal(t, whole[before+i], last[i], "seed %d, step %d of %d", seed, before+i, len(whole))
			}
		}
	}
	require.Greater(t, longest, 10)
}
