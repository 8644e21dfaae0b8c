package passes

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A set has the elements of the views that were added to it, whatever their shape, and no others.
func TestElementSet(t *testing.T) {
	const number = 3000
	random := rand.New(rand.NewPCG(1, 2))
	wholes, within := 0, 0
	for range number {
		shape, n := make([]int, 1+random.IntN(4)), 1
		for i := range shape {
			shape[i] = 1 + random.IntN(12)
			n *= shape[i]
		}
		var sets [2]elementSet
		var want [2][]bool
		for k := range sets {
			want[k] = make([]bool, n)
			for range random.IntN(5) {
				dims := [8]int{0, 1, 0, 1, 0, 1, 0, 1}
				for i, extent := range shape {
					dims[2*i], dims[2*i+1] = 0, extent
					if random.IntN(2) == 0 {
						dims[2*i] = random.IntN(extent)
						dims[2*i+1] = dims[2*i] + random.IntN(extent-dims[2*i]+1)
					}
				}
				sets[k].add(dims, shape)
				for at := range want[k] {
					inside, rest := true, at
					for i := len(shape) - 1; i >= 0; i-- {
						x := rest % shape[i]
						rest /= shape[i]
						inside = inside && dims[2*i] <= x && x < dims[2*i+1]
					}
					want[k][at] = want[k][at] || inside
				}
			}
			if random.IntN(8) == 0 {
				sets[k].addWhole()
				for at := range want[k] {
					want[k][at] = true
				}
			}
			if sets[k].whole {
				wholes++
			}
		}
		all := true
		for at := range n {
			all = all && (!want[0][at] || want[1][at])
		}
		if all {
			within++
		}
		require.Equal(t, all, sets[0].within(&sets[1], n), "%v %v %v", shape, want[0], want[1])
	}
	require.Greater(t, wholes, number/8)
	require.Greater(t, min(within, number-within), number/8)
}
