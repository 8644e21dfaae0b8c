package cost

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/kernel"
)

// Splits of a context are joined of all elements of the query heads of a layer: those of its own, where layers differ.
func TestQueriesOfLayersThatDiffer(t *testing.T) {
	path := "../testdata/golden/llama-layer-heads_h200_bf16/program.json"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	p, diags := ir.LoadJSON(data, path)
	require.NoError(t, diags.Err())
	stages, err := newReader(p).stages(&p.Variants[0], 3)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, s := range stages {
		if s.body == kernel.Attend {
			seen[s.queries] = true
		}
	}
	require.Equal(t, map[int]bool{4 * 12: true, 6 * 12: true}, seen)
}
