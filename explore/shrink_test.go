package explore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// needing judges candidates that fail with all of some deviations, and counts them.
func needing(need []uint64, judged *int) func([][]deviation) []bool {
	return func(candidates [][]deviation) []bool {
		*judged += len(candidates)
		fails := make([]bool, len(candidates))
		for i, c := range candidates {
			fails[i] = true
			for _, index := range need {
				fails[i] = fails[i] && slices.ContainsFunc(c, func(d deviation) bool { return d[0] == index })
			}
		}
		return fails
	}
}

func deviationsTo(n int) (all []deviation) {
	for i := range n {
		all = append(all, deviation{uint64(2 * i), 1})
	}
	return all
}

func TestShrink(t *testing.T) {
	for _, need := range [][]uint64{{}, {0}, {198}, {6, 100}, {0, 2, 4}, {10, 80, 120, 190}} {
		for _, atOnce := range []int{1, 2, 5} {
			judged := 0
			got := shrink(deviationsTo(100), 1000, atOnce, needing(need, &judged))
			var left []uint64
			for _, d := range got {
				left = append(left, d[0])
			}
			require.ElementsMatch(t, need, left)
			require.True(t, slices.IsSorted(left))
			require.Less(t, judged, 200)
		}
	}
}

// With too few runs what is left still fails, and no more are taken than there are.
func TestShrinkWithinItsRuns(t *testing.T) {
	need := []uint64{10, 80, 120, 190}
	last := 101
	for most := range 60 {
		judged := 0
		try := needing(need, &judged)
		got := shrink(deviationsTo(100), most, 2, try)
		require.LessOrEqual(t, judged, most)
		require.True(t, try([][]deviation{got})[0])
		require.LessOrEqual(t, len(got), last)
		last = len(got)
	}
	require.Less(t, last, 100)
	require.Empty(t, shrink(nil, 10, 2, func([][]deviation) []bool { panic("there is nothing to take out") }))
}
