package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A loop is code for the layers of one iteration, and each layer next to it or in no loop is code for another, whatever
// the configuration says.
func TestWrittenLayers(t *testing.T) {
	for name, p := range goldenPrograms(t) {
		layers := 0
		for v := range p.Variants {
			layers = max(layers, loopOf(p, v).Count)
		}
		require.Equal(t, 1, WrittenLayers(p), name)
		require.Equal(t, min(3, layers), WrittenLayers(unrolled(t, p, 2)), name)
		require.Equal(t, layers, WrittenLayers(unrolled(t, p, -1)), name)
	}
}

// Facts of layers that differ say where the cache of each begins; a layer without one is refused.
func TestFactsOfLayersWithoutCaches(t *testing.T) {
	p := goldenPrograms(t)["llama-layer-heads_h200_bf16"]
	facts, err := Facts(p)
	require.NoError(t, err)
	require.Len(t, facts.Layers, p.Model.Layers)
	b, err := build(p)
	require.NoError(t, err)
	b.caches = nil
	_, err = b.layers()
	require.ErrorContains(t, err, "layer 0 has no cache that a stage of its own reads")
	require.ErrorContains(t, err, "[AMK4003]")
}
