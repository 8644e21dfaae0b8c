package host_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// Late epochs come round within two steps, whatever the number of exchanges, and counters of 32 bits see none of it.
func TestLateEpochsComeRound(t *testing.T) {
	require.Zero(t, host.LateEpoch(0))
	for exchanges := 1; exchanges < 2000; exchanges++ {
		late := host.LateEpoch(exchanges)
		require.Zero(t, uint32(late))
		require.Less(t, late, uint64(1)<<48) // times the exchanges, it fits 64 bits
		first := int(late * uint64(exchanges) % 65535)
		require.Greater(t, first+2*exchanges, 65535, "%d exchanges", exchanges)
		require.Less(t, first, 65535, "%d exchanges", exchanges)
	}
}

// A session of late epochs counts from there whenever it clears the pages, and gives the same tokens. The fake
// driver holds each launch to its epoch.
func TestLateEpochs(t *testing.T) {
	settings := fmt.Sprintf("late=%d ", host.LateEpoch(14)>>32)
	prompt := []int{5, 9, 2}
	s := openWith(t, settings, host.Options{LateEpochs: true})
	for range 2 {
		s.Reset()
		c, err := s.Complete(t.Context(), prompt, 40, nil, nil)
		require.NoError(t, err)
		require.Equal(t, greedy(prompt, 40), c.IDs)
	}
}
