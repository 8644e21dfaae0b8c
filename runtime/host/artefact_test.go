package host

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step may be below the ceiling of a ring of unequal shares, and not by much, nor below a plain read of what does not
// fit L2.
func TestWhatIsImpossible(t *testing.T) {
	for _, c := range []struct {
		latency, ceiling, read, cached float64
		impossible                     bool
	}{
		{100, 90, 95, 0, false},
		{437.83, 463.11, 389, 0, false}, // an H100, contiguous tiles
		{400, 463, 389, 0, true},
		{380, 383, 389, 0, true},
		{385, 383, 389, 0, false},   // a ring reads faster than plain loads
		{155, 158, 158, 0.1, false}, // an H100, 490 MB a step
		{155, 158, 158, 0.01, true},
		{140, 158, 158, 0.5, true},
		{0, 90, 80, 0, true},
		{80, 0, 80, 0, true},
		{100, 90, math.NaN(), 0, true},
	} {
		e := &ArtefactError{Latency: c.latency, Ceiling: c.ceiling, Read: c.read, Cached: c.cached}
		require.Equal(t, c.impossible, e.impossible(), "%+v", c)
	}
}
