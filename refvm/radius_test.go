package refvm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/half"
)

// Each op that kernels compute has a rule, but for those that yield no numbers of a vector.
func TestRadiiHaveEveryOp(t *testing.T) {
	without := map[ir.Opcode]bool{ir.NOP: true, ir.SAMPLE: true, ir.STOP: true}
	for code, spec := range ir.Ops {
		if spec != nil && spec.Kernel && !without[ir.Opcode(code)] {
			require.Contains(t, radiusOf, ir.Opcode(code), spec.Name)
		}
	}
	require.Len(t, radiusOf, len(Radii))
}

// inOrderOf adds terms up in fp32, along a number of chains, which are joined at the end.
func inOrderOf(lot *rand.Rand, terms []float64, chains int) float32 {
	sums := make([]float32, chains)
	for _, i := range lot.Perm(len(terms)) {
		sums[i%chains] += float32(terms[i])
	}
	for n := chains; n > 1; n = (n + 1) / 2 {
		for i := range n / 2 {
			sums[i] += sums[n-1-i]
		}
	}
	return sums[0]
}

// A sum is exact in any order where its radius is 0, and within the radius elsewhere, which is no more than 1,000 times
// what is seen.
func TestSums(t *testing.T) {
	lot := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 7, 64, 512, 4096} {
		most, exact := 0.0, 0
		for range 200 {
			sum, terms := newSum(), make([]float64, n)
			integers := lot.IntN(4) == 0
			for i := range terms {
				if terms[i] = float64(float32(lot.NormFloat64())); integers {
					terms[i] = math.Ldexp(float64(lot.IntN(4001)-2000), -7)
				}
				sum.add(terms[i])
			}
			radius := sum.radius()
			require.Equal(t, sum.exact(), radius == 0)
			require.Equal(t, sum.exact(), sum.cuts() == 0)
			if integers {
				require.Zero(t, radius)
				exact++
			}
			for _, chains := range []int{8, 32, 64} {
				off := math.Abs(float64(inOrderOf(lot, terms, chains)) - sum.value)
				require.LessOrEqual(t, off, radius)
				if radius > 0 {
					most = max(most, off/radius)
				}
			}
		}
		require.Positive(t, exact)
		if n > 1 {
			require.Greater(t, most, 1e-3, "%d terms", n)
		}
	}
	for _, c := range []struct {
		terms []float64
		exact bool
	}{
		{nil, true},
		{[]float64{0, 0}, true},
		{[]float64{1, 0x1p-23}, true},
		{[]float64{1, 0x1p-24}, false},                     // the sum has 25 bits
		{[]float64{1 << 23, -(1 << 23), 1}, false},         // it has 1, and in other orders 24 bits are not enough
		{[]float64{1 << 22, -(1 << 22), 1 << 20, 1}, true}, // they are
		{[]float64{0x1p-140, 0x1p-141}, false},             // subnormal numbers, which some functions take for 0
	} {
		sum := newSum()
		for _, f := range c.terms {
			sum.add(f)
		}
		require.Equal(t, c.exact, sum.exact(), "%v", c.terms)
	}
}

// What may come out of a rounding is what is within the radius before it, and how far off a kernel was, at least.
func TestReach(t *testing.T) {
	round := rounder(half.RoundBF16)
	reach := func(f float32, e float64) Reach {
		lo, hi := round.reach(f, e)
		return Reach{Value: f, Radius: e, Lo: lo, Hi: hi, round: round}
	}
	for _, c := range []struct {
		f      float32
		e      float64
		lo, hi float32
	}{
		{1, 0, 1, 1},
		{1, 0x1p-9, 1 - 0x1p-8, 1},            // the middle to what is below, and half of the way to that above
		{1 + 0x1p-8, 0x1p-20, 1, 1 + 0x1p-7},  // the middle of two
		{1 + 0x1p-8 - 0x1p-19, 0x1p-20, 1, 1}, // just below it
		{1 + 0x1p-8 + 0x1p-19, 0x1p-20, 1.0078125, 1.0078125},
		{-3, 1, -4, -2},
	} {
		r := reach(c.f, c.e)
		require.Equal(t, [2]float32{c.lo, c.hi}, [2]float32{r.Lo, r.Hi}, "%v ± %v", c.f, c.e)
	}
	r := reach(1+0x1p-10, 0x1p-8)
	require.Zero(t, r.Off(1))
	require.InDelta(t, 0x1p-8-0x1p-10, r.Off(1+0x1p-7), 1e-9)
	require.InDelta(t, 0x1p-9+0x1p-10, r.Off(1-0x1p-8), 1e-9)
	r = Reach{Value: 3, Radius: 1}
	require.Equal(t, 0.5, r.Off(3.5))
	require.Equal(t, 0x1p-7, round.radius(1, 0x1p-8), "the middle, and what is beyond it")
}
