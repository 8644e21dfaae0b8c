package refvm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/half"
)

// Values of bf16 are exact in fp16 down to 2^-31 of the largest of their 128 columns, and rounded to a multiple of
// 2^-39 of its power of two below; those of fp16 are all exact.
func TestInFP16(t *testing.T) {
	w := &worker{}
	for i, largest := range []float32{1, 0x1.fep15, 0x1p-90, 0x1.fep127, 3.5} {
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		step := math.Ldexp(1, int(math.Floor(math.Log2(float64(largest))))-39)
		x := make([]float32, 128)
		for k := range x {
			x[k] = half.RoundBF16(largest * float32(math.Ldexp(rng.Float64()-0.5, -rng.IntN(45))))
		}
		x[5] = -largest
		for k, got := range w.inFP16(x, len(x), 0) {
			want := float64(x[k])
			if math.Abs(want) < float64(largest)*0x1p-31 {
				want = math.RoundToEven(want/step) * step
			}
			require.Equal(t, float32(want), got, "%g of %g", x[k], largest)
		}
	}
	all := make([]float32, 0, 1<<16)
	for bits := range 1 << 16 {
		if f := half.FromF16(uint16(bits)); !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) {
			all = append(all, f)
		}
	}
	require.Equal(t, all, w.inFP16(all, len(all), 0))
}

// Each 128 columns of the matrix have a power of two of their own, in every row; what is infinite or no number stays
// so.
func TestBlocksInFP16(t *testing.T) {
	w := &worker{}
	x := []float32{1, 0x1p-60, 0x1p-60, 0x1p-60, 0, 0x1p-60, 0x1p-120, 0x1p-100}
	require.Equal(t, []float32{1, 0, 0x1p-60, 0x1p-60, 0, 0x1p-60, 0x1p-120, 0x1p-100}, w.inFP16(x, 4, 126))
	x = []float32{float32(math.Inf(-1)), 1, 0x1p120, float32(math.NaN()), 2}
	got := w.inFP16(x, len(x), 125)
	require.True(t, math.IsInf(float64(got[0]), -1))
	require.Zero(t, got[1])
	require.Equal(t, float32(0x1p120), got[2])
	require.True(t, math.IsNaN(float64(got[3])))
}

// A product with a matrix of e4m3 rounds its vector where the kernel does: what is largest shows, though its weight is
// 0.
func TestProductInFP16(t *testing.T) {
	weights := weightsFunc(func(b *ir.Buffer, _ int) ([]float32, error) {
		w := make([]float32, b.Numel())
		w[4], w[129] = 448, 448
		return w, nil
	})
	for _, c := range []struct {
		exchanged string
		round     Rounding
		want      float32
	}{{"BF16", Device, 448}, {"BF16", None, 896}, {"F32", Device, 896}} {
		flat := unroll(t, parse(t, oneTask("buffer x IO_INPUT F32 [130] HBM rowmajor\n"+
			"buffer w WEIGHT F8E4M3 [1,130] HBM tile8x128.g128.BF16\nbuffer y ACTIVATION F32 [1] HBM rowmajor\n"+
			"buffer z ACTIVATION "+c.exchanged+" [1] HBM rowmajor", "y[0:1] = GEMV_TILE(x[0:130], w[0:1,0:130])")))
		vm, err := New(flat, weights, Options{Round: c.round})
		require.NoError(t, err)
		x := make([]float32, 130)
		x[3], x[4], x[129] = 0x1p50, 1, 1
		require.NoError(t, vm.Write("x", x))
		require.NoError(t, vm.Step(0, -1, Order{}))
		y, _ := vm.Read("y")
		require.Equal(t, []float32{c.want}, y)
	}
}
