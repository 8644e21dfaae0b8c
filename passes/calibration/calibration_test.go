package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/format"
)

// vectors are correlated, as activations are: a few directions of different strengths, and noise.
func vectors(rng *rand.Rand, count, n int) []float32 {
	directions := make([]float32, 3*n)
	for i := range directions {
		directions[i] = float32(rng.NormFloat64()) * float32(1+i%5)
	}
	x := make([]float32, count*n)
	for v := range count {
		a, b, c := float32(rng.NormFloat64()), float32(rng.NormFloat64()), float32(1)
		for i := range n {
			x[v*n+i] = a*directions[i] + b*directions[n+i] + c*directions[2*n+i] + float32(rng.NormFloat64())
		}
	}
	return x
}

func gramOf(x []float32, n int) *Gram {
	g := NewGram(n)
	Add([]*Gram{g}, [][]float32{x})
	return g
}

// damped is the matrix that Inputs takes apart, in float64.
func damped(g *Gram) func(i, j int) float64 {
	mean := 0.0
	for i := range g.N {
		mean += float64(g.At(i, i)) / float64(g.N)
	}
	return func(i, j int) float64 {
		h := float64(g.At(i, j))
		if i == j {
			h += damping * mean
		}
		return h
	}
}

// A sum is that of the definition, whatever pieces the vectors come in.
func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 3, 40} {
		x := vectors(rng, 13, n)
		whole, parts := gramOf(x, n), NewGram(n)
		for first := 0; first < 13; first += 5 {
			Add([]*Gram{parts}, [][]float32{x[first*n : min(13, first+5)*n]})
		}
		require.Equal(t, 13, whole.Vectors)
		require.Equal(t, 13, parts.Vectors)
		for i := range n {
			for j := range n {
				want := 0.0
				for v := range 13 {
					want += float64(x[v*n+i]) * float64(x[v*n+j])
				}
				require.InDelta(t, want, whole.At(i, j), 1e-3*float64(n+10))
				require.InDelta(t, want, parts.At(i, j), 1e-3*float64(n+10))
			}
		}
	}
}

// L and D multiply to what they were made of.
func TestFactor(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 2, 31, 32, 33, 100} {
		g := gramOf(vectors(rng, 2*n, n), n)
		h := damped(g)
		a := &triangle{n, make([]float64, len(g.sum))}
		for i := range n {
			for j := range i + 1 {
				a.row(i)[j] = h(i, j)
			}
		}
		require.True(t, a.factor())
		l := func(k, i int) float64 {
			switch {
			case i == k:
				return 1
			case i > k:
				return 0
			}
			return a.row(k)[i]
		}
		for i := range n {
			for j := range n {
				sum := 0.0
				for k := range n {
					sum += l(k, i) * a.row(k)[k] * l(k, j)
				}
				require.InDelta(t, h(i, j), sum, 1e-9*math.Sqrt(h(i, i)*h(j, j)), "%d: %d, %d", n, i, j)
			}
		}
	}
}

func TestWhatHasNoFactors(t *testing.T) {
	in, err := NewGram(4).Inputs()
	require.NoError(t, err)
	require.Nil(t, in, "nothing but zeros")
	_, err = gramOf([]float32{1, float32(math.NaN())}, 2).Inputs()
	require.ErrorIs(t, err, errIndefinite)
	_, err = gramOf([]float32{1, 1e30}, 2).Inputs()
	require.ErrorIs(t, err, errIndefinite, "its square is infinite")
	_, err = gramOf([]float32{0, 1, 0, 0}, 2).Inputs()
	require.NoError(t, err, "an input that is always 0")
}

// productError is what rounding makes of the products with the vectors of a sum, damped: Σ e·H·eᵀ over rows.
func productError(h func(i, j int) float64, n int, values, rounded []float32) float64 {
	sum := 0.0
	for row := 0; row < len(values); row += n {
		for i := range n {
			for j := range n {
				sum += float64(values[row+i]-rounded[row+i]) * h(i, j) * float64(values[row+j]-rounded[row+j])
			}
		}
	}
	return sum
}

// quantisedFormats are those with scales in bf16.
func quantisedFormats() (all []format.Quantised) {
	for _, dtype := range []string{"I4", "I8", "F8E4M3"} {
		for _, group := range []int{32, 64, 128} {
			for _, zeros := range []bool{false, true} {
				if f := format.Find(format.Scales{Group: group, Type: "BF16", Zeros: zeros}.Layout(), dtype); f != nil {
					all = append(all, f.(format.Quantised))
				}
			}
		}
	}
	return all
}

// Every format has smaller errors of products with the vectors than without, and larger ones of the weights.
func TestProductsAreCloser(t *testing.T) {
	const n, rows = 160, 11
	rng := rand.New(rand.NewPCG(3, 3))
	g := gramOf(vectors(rng, 500, n), n)
	in, err := g.Inputs()
	require.NoError(t, err)
	values := make([]float32, rows*n)
	for i := range values {
		values[i] = 0.02 * float32(rng.NormFloat64())
	}
	for _, f := range quantisedFormats() {
		plain, calibrated := make([]float32, len(values)), make([]float32, len(values))
		f.Unpack(plain, f.Pack(nil, values, n), n)
		f.Unpack(calibrated, f.PackFor(nil, values, n, in), n)
		before := productError(damped(g), n, values, plain)
		after := productError(damped(g), n, values, calibrated)
		require.Less(t, after, 0.8*before, "%s %s", f.DType(), f.Layout())
		alike := func(i, j int) float64 { return float64(1 - min(1, max(i, j)-min(i, j))) }
		require.Greater(t, productError(alike, n, values, calibrated), productError(alike, n, values, plain),
			"%s %s", f.DType(), f.Layout())
	}
}

// Of two columns, the second takes up the error of the first as well as any integer can: no other choice for it is
// better, and where inputs have nothing to do with each other both are rounded on their own.
func TestOneColumnMakesUpForAnother(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	f := quantisedFormats()[0]
	for range 200 {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		x := []float32{float32(a + 2*b), float32(a - b), float32(b), float32(a), 1, float32(rng.NormFloat64())}
		g := gramOf(x, 2)
		in, err := g.Inputs()
		require.NoError(t, err)
		values := []float32{float32(rng.NormFloat64()), float32(rng.NormFloat64())}
		packed := f.PackFor(nil, values, 2, in)
		got := make([]float32, 2)
		f.Unpack(got, packed, 2)
		groups := f.UnpackGroups(packed, 1, 2)
		best := productError(damped(g), 2, values, got)
		last := in.Order[1]
		for q := -8; q < 8; q++ {
			other := slices.Clone(got)
			other[last] = groups.Scale[0] * float32(q)
			require.GreaterOrEqual(t, productError(damped(g), 2, values, other), best*(1-1e-4)-1e-9)
		}
	}
	apart := &format.Inputs{Square: []float32{1, 1}, Order: []int{1, 0}, Carry: []float32{0}}
	values := []float32{0.3, -0.7}
	require.Equal(t, f.Pack(nil, values, 2), f.PackFor(nil, values, 2, apart))
}

// Neither the number of processors nor the blocks of rows that are packed together show.
func TestBitsDoNotDependOnProcessors(t *testing.T) {
	const n, rows = 200, 24
	x := vectors(rand.New(rand.NewPCG(5, 5)), 70, n)
	values := vectors(rand.New(rand.NewPCG(6, 6)), rows, n)
	var want [][]byte
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(processors)
		in, err := gramOf(x, n).Inputs()
		require.NoError(t, err)
		for k, f := range quantisedFormats() {
			name := fmt.Sprintf("%s %s, %d processors", f.DType(), f.Layout(), processors)
			packed := f.PackFor(nil, values, n, in)
			if processors == 1 {
				want = append(want, packed)
			}
			require.Equal(t, want[k], packed, name)
			half := f.PackFor(nil, values[:rows/3*n], n, in)
			require.Equal(t, want[k], append(half, f.PackFor(nil, values[rows/3*n:], n, in)...), name)
		}
	}
}
