package simulate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// The stretches of a view are its elements, in order, and apart.
func TestStretches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		shape, dims := make([]int, 1+r.IntN(4)), []ir.Range{}
		for d := range shape {
			shape[d] = 1 + r.IntN(6)
			lo := r.IntN(shape[d] + 1)
			x := ir.Range{Lo: ir.Int(lo), Hi: ir.Int(lo + r.IntN(shape[d]+1-lo))}
			if r.IntN(3) == 0 {
				x = ir.Range{Lo: ir.Int(0), Hi: ir.Int(shape[d])}
			}
			if r.IntN(3) == 0 {
				x.Block, x.Parts, x.Part = 1+r.IntN(2), 2, ir.Int(r.IntN(2))
			}
			dims = append(dims, x)
		}
		want, got := elementsOf(&ir.Buffer{Shape: shape}, dims, 0), []int{}
		for _, x := range stretchesOf(shape, dims, 0) {
			for e := x[0]; e < x[1]; e++ {
				got = append(got, e)
			}
		}
		require.Len(t, got, len(want))
		if len(want) > 0 {
			require.Equal(t, want, got, "%v of %v", dims, shape)
		}
	}
}
