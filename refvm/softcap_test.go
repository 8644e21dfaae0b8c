package refvm

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func capped(x, bound float64) float64 { return bound * math.Tanh(x/bound) }

var capCases = []caseOp{
	{name: "soft cap", op: `out[0:4] = SOFTCAP(x[2:6]) cap=0.75`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return capped(in[0][i], 0.75) })
		}},
	{name: "clip", op: `out[0:4] = CLIP(x[2:6]) cap=0.75`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return max(-0.75, min(in[0][i], 0.75)) })
		}},
}

// A soft cap is what float64 makes of it, where x / cap is a normal float32 or infinite; it is odd, never falls and
// never leaves its bounds.
func TestSoftCapProperties(t *testing.T) {
	var xs []float32
	for e := -100; e <= 120; e++ {
		for _, m := range []float64{1, 1.2345, 1.75} {
			xs = append(xs, float32(math.Ldexp(m, e)))
		}
	}
	n := len(xs)
	for i := range n {
		xs = append(xs, -xs[i])
	}
	xs = append(xs, 0, float32(math.Inf(1)), float32(math.Inf(-1)), nan)
	for _, bound := range []float64{1e-3, 1, 30, 50, 1e6} {
		text := fmt.Sprintf("buffer x IO_INPUT F32 [%d] HBM rowmajor\nbuffer out ACTIVATION F32 [%d] HBM rowmajor",
			len(xs), len(xs))
		vm, err := New(unroll(t, parse(t, oneTask(text, fmt.Sprintf("out[0:%d] = SOFTCAP(x[0:%d]) cap=%g", len(xs),
			len(xs), bound)))), noise(1), Options{})
		require.NoError(t, err)
		require.NoError(t, vm.Write("x", xs))
		require.NoError(t, vm.Step(0, -1, Order{}))
		got, err := vm.Read("out")
		require.NoError(t, err)
		for i, x := range xs[:2*n] {
			want := capped(float64(x), float64(float32(bound)))
			require.InEpsilon(t, want, float64(got[i]), 3e-7, "%g with cap %g", x, bound)
			require.LessOrEqual(t, math.Abs(float64(got[i])), float64(float32(bound)))
			if i < n {
				require.Equal(t, got[i], -got[n+i])
				require.True(t, i == 0 || got[i-1] <= got[i], "%g with cap %g", x, bound)
			}
		}
		rest := got[2*n:]
		require.Equal(t, []float32{0, float32(bound), -float32(bound)}, rest[:3])
		require.True(t, math.IsNaN(float64(rest[3])))
	}
}
