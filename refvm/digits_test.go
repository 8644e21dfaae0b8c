package refvm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A product with a matrix of integers takes the vector in fixed point where the kernel does, in groups of the matrix's
// columns, and as it is where nothing is rounded.
func TestProductsInDigits(t *testing.T) {
	const rows, cols = 3, 300
	x, _ := noise(5).Floats(&ir.Buffer{Name: "x", Shape: []int{cols}}, 0)
	clear(x[130:140])
	x[7], x[131] = 40, 0x1p-30
	for _, c := range []struct {
		format      string
		first, last int
		exchanged   string // type of what the program publishes
		digits      bool
	}{
		{"I4 [3,300] HBM tile8x128.g64.BF16", 0, 300, "BF16", true},
		{"I8 [3,300] HBM tile8x128.g32.F16.zeros", 0, 300, "F16", true},
		{"I4 [3,300] HBM tile8x128.g128.F32", 100, 290, "BF16", true},
		{"I4 [3,300] HBM tile8x128.g128.F32", 0, 300, "F32", false},
		{"F32 [3,300] HBM tile8x32", 0, 300, "BF16", false},
	} {
		for _, round := range []Rounding{None, Device} {
			columns := ir.Span(ir.Int(c.first), ir.Int(c.last)).String()
			flat := unroll(t, parse(t, oneTask("buffer x IO_INPUT F32 [300] HBM rowmajor\nbuffer w WEIGHT "+c.format+
				"\nbuffer y ACTIVATION F32 [3] HBM rowmajor\nbuffer z ACTIVATION "+c.exchanged+" [1] HBM rowmajor",
				"y[0:3] = GEMV_TILE(x["+columns+"], w[0:3,"+columns+"])")))
			vm, err := New(flat, noise(4), Options{Round: round})
			require.NoError(t, err)
			require.NoError(t, vm.Write("x", x))
			require.NoError(t, vm.Step(0, -1, Order{}))
			w, _ := vm.Read("w")
			y, _ := vm.Read("y")
			rounded := make([]float64, cols)
			for group := 0; group < cols; group += 128 {
				largest := 0.0
				for k := max(group, c.first); k < min(group+128, c.last); k++ {
					largest = max(largest, math.Abs(float64(x[k])))
				}
				for k := max(group, c.first); k < min(group+128, c.last); k++ {
					rounded[k] = float64(x[k])
					if c.digits && round == Device {
						rounded[k] = math.RoundToEven(float64(x[k])*32512/largest) * largest / 32512
					}
				}
			}
			for j := range rows {
				want, plain := 0.0, 0.0
				for k := c.first; k < c.last; k++ {
					want += rounded[k] * float64(w[j*cols+k])
					plain += float64(x[k]) * float64(w[j*cols+k])
				}
				require.InDelta(t, want, float64(y[j]), 1e-4, "%s %v", c.format, round)
				require.InDelta(t, plain, float64(y[j]), 0.1, "%s %v", c.format, round)
			}
		}
	}
}

func TestDigits(t *testing.T) {
	d := digitsOf([]float32{1, -0.5, 0, 1.0 / 32512}, 126) // the last two are of the next 128 columns
	require.Equal(t, []float64{32512, -16256, 0, 32512}, d.n)
	require.Equal(t, float32(3), d.dot([]float32{2, -2, 5, 0}))
	d = digitsOf(make([]float32, 200), 0)
	require.Zero(t, d.dot(make([]float32, 200)))
	d = digitsOf([]float32{1, float32(math.NaN())}, 0)
	require.True(t, math.IsNaN(float64(d.dot([]float32{1, 0}))), "as in the kernel, where NaN is the largest")
}
