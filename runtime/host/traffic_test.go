package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// Layers with a window read no more rows than it has, besides the step's own.
func TestCacheBytes(t *testing.T) {
	traffic := host.Traffic{Weights: 1000, Cache: []host.CacheRows{{Bytes: 10}, {Bytes: 100, Window: 4}}}
	for position, want := range []float64{0, 110, 220, 330, 340, 350} {
		require.Equal(t, want, traffic.CacheBytes(position, 1), position)
	}
	require.Equal(t, (220+330+340)/3.0, traffic.CacheBytes(2, 3), "the mean of three steps")
	require.Zero(t, (&host.Traffic{Cache: []host.CacheRows{{Bytes: 10, Window: 1}}}).CacheBytes(100, 1))
}
