package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRounds: eight warps take a block each; a last round of up to four blocks is half a round, and so is that of the
// step's own row.
func TestRounds(t *testing.T) {
	for blocks, want := range map[float64]float64{0: 0.5, 1: 0.5, 4: 0.5, 5: 1, 8: 1, 9: 1.5, 12: 1.5, 13: 2, 16: 2,
		33: 4.5} {
		require.Equal(t, want, rounds(blocks), "%v blocks", blocks)
	}
}
