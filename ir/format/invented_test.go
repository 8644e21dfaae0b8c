package format

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Invented matrices have finite elements with a mean of 0 and about the deviation of random ones, in all formats that
// --weights and the elements of a model give; and none of others.
func TestInvented(t *testing.T) {
	const rows, cols = 512, 512
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range all {
		t.Run(f.Layout()+" "+f.DType(), func(t *testing.T) {
			keep, set := Invented(f)
			if b, is := f.(blocks); is && (b.mins || b.steps || b.dtype == "I5" || b.dtype == "I6") {
				require.Nil(t, keep)
				return
			}
			require.Len(t, set, len(keep))
			require.Zero(t, len(keep)%8, "of whole random numbers")
			require.Zero(t, f.Geometry().TileBytes(128)%len(keep)*(f.Geometry().Rows-1), "tiles begin with the pattern")
			for i := range keep {
				require.Zero(t, keep[i]&set[i])
			}
			packed, values := make([]byte, f.Bytes(rows, cols)), make([]float32, rows*cols)
			for i := range packed {
				packed[i] = byte(rng.Uint32())&keep[i%len(keep)] | set[i%len(keep)]
			}
			f.Unpack(values, packed, cols)
			var sum, squares float64
			seen := map[float32]bool{}
			for _, v := range values {
				sum += float64(v)
				squares += float64(v) * float64(v)
				seen[v] = true
			}
			size := math.Sqrt(squares / rows / cols)
			require.InDelta(t, 1, size/deviation, 0.45)
			require.Less(t, math.Abs(sum/rows/cols), size/15, "what zero points add to groups is not that even")
			require.Greater(t, len(seen), 10)
		})
	}
}
