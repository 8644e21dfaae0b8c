package refvm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/half"
)

// The norm's product is rounded once, the sum of the product with a matrix is scaled: the table in the package comment.
func TestDeviceRoundsTheNorm(t *testing.T) {
	flat := unroll(t, parse(t, oneTask(`buffer x IO_INPUT BF16 [64] HBM rowmajor
buffer g WEIGHT BF16 [64] HBM rowmajor
buffer w WEIGHT BF16 [3,64] HBM rowmajor
buffer n ACTIVATION F32 [64] HBM rowmajor
buffer y ACTIVATION F32 [3] HBM rowmajor
buffer z ACTIVATION BF16 [3] HBM rowmajor`, `%n, n[0:64] = RMSNORM(x[0:64], g[0:64]) eps=0.001
y[0:3], z[0:3] = GEMV_TILE(%n, w[0:3,0:64])`)))
	vm, err := New(flat, noise(4), Options{Round: Device})
	require.NoError(t, err)
	x, _ := noise(5).Floats(&ir.Buffer{Name: "x", Shape: []int{64}}, 0)
	for i := range x {
		x[i] = half.RoundBF16(x[i])
	}
	require.NoError(t, vm.Write("x", x))
	require.NoError(t, vm.Step(0, -1, Order{}))
	g, _ := vm.Read("g")
	w, _ := vm.Read("w")
	square, product := 0.0, make([]float64, 64)
	for i := range x {
		require.Equal(t, half.RoundBF16(g[i]), g[i], "weights are rounded on loading")
		square += float64(x[i]) * float64(x[i]) / 64
		product[i] = float64(half.RoundBF16(x[i] * g[i]))
	}
	inverse := 1 / math.Sqrt(square+0.001)
	n, _ := vm.Read("n")
	y, _ := vm.Read("y")
	z, _ := vm.Read("z")
	for i := range n {
		require.InDelta(t, product[i]*inverse, float64(n[i]), 1e-6)
	}
	for j, want := range matmul(product, wide(w), 64) {
		require.InDelta(t, want*inverse, float64(y[j]), 2e-6)
		require.Equal(t, half.RoundBF16(y[j]), z[j])
	}
}

// Probabilities of cached rows are rounded to the type of the cache, that of the step's own row is not, and what they
// are divided by is the sum before rounding.
func TestDeviceRoundsProbabilities(t *testing.T) {
	flat := unroll(t, parse(t, oneTask(`buffer q IO_INPUT F16 [2] HBM rowmajor
buffer kv KV_CACHE F16 [1,8,2,2] HBM rowmajor
buffer row IO_INPUT F16 [4] HBM rowmajor
buffer out ACTIVATION F32 [1,1,4] HBM rowmajor`,
		`out[0,0,0:4] = ATTENTION_TILE(q[0:2], kv[0,0:pos,0,0:2], kv[0,0:pos,1,0:2], row[0:2], row[2:4]) head_dim=2 `+
			`n_heads=1 n_kv_heads=1 scale=1.0 flags=2 row=pos`)))
	vm, err := New(flat, noise(4), Options{Round: Device})
	require.NoError(t, err)
	require.NoError(t, vm.Write("q", []float32{1, 0.5}))
	require.NoError(t, vm.Write("row", []float32{0.25, -0.5, 4, 8}))
	require.NoError(t, vm.Write("kv", []float32{1, 2, 1, 0, -1, 1, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0}))
	require.NoError(t, vm.Step(3, -1, Order{}))
	out, _ := vm.Read("out")
	scores := []float64{2, -0.5, 3, 0} // of rows 0 to 2 and of the own one
	p := func(i int) float64 { return float64(half.RoundF16(float32(math.Exp(scores[i] - 3)))) }
	own := float64(float32(math.Exp(scores[3] - 3)))
	require.NotEqual(t, own, float64(half.RoundF16(float32(own))))
	require.InDelta(t, p(0)+own*4, float64(out[0]), 1e-7)
	require.InDelta(t, p(1)+own*8, float64(out[1]), 1e-7)
	require.Equal(t, float32(3), out[2])
	sum := 0.0
	for _, s := range scores {
		sum += math.Exp(s - 3)
	}
	require.InDelta(t, sum, float64(out[3]), 1e-6)
}

// In mode Device what is exchanged and what is cached fits its type; without rounding it does not. Both decode alike.
func TestDeviceDecoder(t *testing.T) {
	for _, dtype := range []string{"BF16", "F16"} {
		d := odd
		d.DType, d.Word = dtype, "word32"
		round := rounderFor(Device, map[string]ir.DType{"BF16": ir.BF16, "F16": ir.F16}[dtype])
		w := d.tensors(3)
		exact, device := d.session(t, w, Options{}), d.session(t, w, Options{Round: Device})
		for pos := range 9 {
			want, _, err := exact.Step(pos * 7)
			require.NoError(t, err)
			got, _, err := device.Step(pos * 7)
			require.NoError(t, err)
			require.InDeltaSlice(t, wide(want), wide(got), 0.1)
			require.NotEqual(t, wide(want), wide(got))
		}
		for _, name := range []string{"L01.kv", "L01.act", "L01.qkv.weight"} {
			vm, err := device.At(8)
			require.NoError(t, err)
			values, err := vm.Read(name)
			require.NoError(t, err)
			require.Equal(t, bitsOf(round.all(values)), bitsOf(values), name)
			vm, err = exact.At(8)
			require.NoError(t, err)
			values, err = vm.Read(name)
			require.NoError(t, err)
			require.NotEqual(t, bitsOf(round.all(values)), bitsOf(values), name)
		}
	}
}
