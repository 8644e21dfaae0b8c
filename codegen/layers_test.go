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
