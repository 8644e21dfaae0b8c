package refvm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/half"
)

// apartOf runs ops on a vector x that kernels were given, and returns the radius of y for any order, and how far it may
// be apart with the same sums.
func apartOf(t *testing.T, buffers, ops string) (radius, apart []float64) {
	t.Helper()
	vm, err := New(unroll(t, parse(t, oneTask(buffers, ops))), noise(4), Options{Round: Device, Radii: true,
		SameSums: true})
	require.NoError(t, err)
	x, _ := noise(5).Floats(&ir.Buffer{Name: "x", Shape: []int{256}}, 0)
	for i := range x {
		x[i] = half.RoundBF16(x[i])
	}
	require.NoError(t, vm.Write("x", x))
	require.NoError(t, vm.Step(0, -1, Order{}))
	for _, r := range vm.Reach("y") {
		radius = append(radius, r.Radius)
	}
	return radius, vm.Apart("y")
}

// Kernels with the same sums are apart where a function has an error, and nowhere else; by no more than twice what any
// order may be off.
func TestSameSums(t *testing.T) {
	const vectors = `buffer x IO_INPUT BF16 [256] HBM rowmajor
buffer g WEIGHT BF16 [256] HBM rowmajor
buffer w WEIGHT BF16 [6,256] HBM rowmajor
`
	const normed = `%n = RMSNORM(x[0:256], g[0:256]) eps=0.001
y[0:6] = GEMV_TILE(%n, w[0:6,0:256])`
	sum := func(v []float64) (total float64) {
		for _, e := range v {
			total += e
		}
		return total
	}
	t.Run("a product", func(t *testing.T) {
		radius, apart := apartOf(t, vectors+"buffer y ACTIVATION F32 [6] HBM rowmajor",
			"y[0:6] = GEMV_TILE(x[0:256], w[0:6,0:256])")
		require.Positive(t, sum(radius))
		require.Zero(t, sum(apart))
	})
	t.Run("after a norm", func(t *testing.T) {
		radius, apart := apartOf(t, vectors+"buffer y ACTIVATION F32 [6] HBM rowmajor", normed)
		for i := range apart {
			require.Positive(t, apart[i])
			require.Less(t, apart[i], 2*radius[i]) // which has the sums in it
		}
	})
	t.Run("rounded", func(t *testing.T) {
		radius, apart := apartOf(t, vectors+"buffer y ACTIVATION BF16 [6] HBM rowmajor", normed)
		require.Positive(t, sum(radius))
		same := 0
		for _, e := range apart {
			if e == 0 {
				same++
			}
		}
		require.GreaterOrEqual(t, same, 4, "of six, which are seldom close to the middle of two numbers")
	})
	t.Run("activations", func(t *testing.T) {
		_, apart := apartOf(t, vectors+"buffer y ACTIVATION F32 [128] HBM rowmajor", "y[0:128] = SILU_MUL(x[0:256])")
		require.Positive(t, sum(apart))
		_, apart = apartOf(t, vectors+"buffer y ACTIVATION F32 [256] HBM rowmajor", "y[0:256] = RELU(x[0:256])")
		require.Zero(t, sum(apart))
	})
}

// What is rounded is apart by an ulp where it is not known to which number, and not at all where it is.
func TestHalfApart(t *testing.T) {
	round := rounder(half.RoundBF16)
	for _, c := range []struct {
		f       float32
		e, wide float64
		apart   float64
	}{
		{1 + 0x1p-9, 0, 1, 0},
		{1 + 0x1p-9, 0x1p-20, 0x1p-18, 0},
		{1 + 0x1p-8, 0x1p-20, 0x1p-18, 0x1p-19 + 0x1p-7},         // the middle of two
		{1 + 0x1p-8, 0, 0x1p-18, 0},                              // which both have, to the bit
		{1 + 0x1p-9, 0x1p-20, 0x1p-9, 0x1p-19 + 0x1p-7},          // sums that the VM does not know may be it
		{-(1 << 20) - 1<<12, 0x1p-3, 0x1p-2, 0x1p-2 + 1<<(20-7)}, // the middle, of a large number
	} {
		require.InDelta(t, c.apart, 2*round.halfApart(ir.BF16, c.f, c.e, c.wide), 1e-12, "%v", c)
	}
	require.Equal(t, 0x1p-24, Ulp(ir.F16, 0))
	require.Equal(t, 0x1p-24, Ulp(ir.F16, 0x1p-15))
	require.Equal(t, 0x1p-10, Ulp(ir.F16, 1))
	require.Equal(t, 0x1p-7, Ulp(ir.BF16, 1.5))
	require.Equal(t, 0x1p-23, Ulp(ir.F32, 1))
	require.False(t, math.IsNaN(Ulp(ir.F32, 0)))
}
