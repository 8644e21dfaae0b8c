package host

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step may be below the ceiling of a ring of unequal shares, and not by much, nor below a plain read.
func TestWhatIsImpossible(t *testing.T) {
	for _, c := range []struct {
		latency, ceiling, read float64
		impossible             bool
	}{
		{100, 90, 95, false},
		{437.83, 463.11, 389, false}, // an H100, contiguous tiles
		{400, 463, 389, true},
		{380, 383, 389, true},
		{385, 383, 389, false}, // a ring reads faster than plain loads
		{0, 90, 80, true},
		{80, 0, 80, true},
		{100, 90, math.NaN(), true},
	} {
		e := &ArtefactError{Latency: c.latency, Ceiling: c.ceiling, Read: c.read}
		require.Equal(t, c.impossible, e.impossible(), "%+v", c)
	}
}
