package quality

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Distributions of two tokens, of which everything is known: p = (1/2, 1/2) and q = (3/4, 1/4).
func TestByHand(t *testing.T) {
	p, q := []float32{1, 1}, []float32{float32(math.Log(3)), 0}
	var found tally
	found.add(q, p, 1)
	r := found.report()
	require.InDelta(t, 4, r.Perplexity.Model, 1e-6)
	require.InDelta(t, 2, r.Perplexity.Against, 1e-12)
	want := 0.5*math.Log(0.5/0.75) + 0.5*math.Log(0.5/0.25)
	require.InDelta(t, want, r.KL.Mean, 1e-7, "of the model's from the other side's, not the other way round")
	require.Equal(t, r.KL.Mean, r.KL.Max)
	require.Equal(t, r.KL.Mean, r.KL.P99)
	require.Equal(t, 1.0, r.Agreement, "the lowest id among equals")
	require.InDelta(t, 1, r.Logits.Max, 1e-12)
	require.InDelta(t, (math.Log(3)-1+1)/2, r.Logits.Mean, 1e-7)

	found.add(p, p, 0) // alike, and half as likely to be wrong
	r = found.report()
	require.Equal(t, 2, r.Tokens)
	require.InDelta(t, math.Sqrt(4*2), r.Perplexity.Model, 1e-6, "the geometric mean")
	require.InDelta(t, want/2, r.KL.Mean, 1e-7)
	require.InDelta(t, 0.99*want, r.KL.P99, 1e-7, "between 0 and the largest")
}

// logits draws a row of some spread, around some number.
func logits(r *rand.Rand, vocab int) []float32 {
	spread, at := math.Exp(4*r.NormFloat64()), 100*r.NormFloat64()
	row := make([]float32, vocab)
	for i := range row {
		row[i] = float32(at + spread*r.NormFloat64())
	}
	return row
}

// Divergence is what the formula says of the probabilities, is never negative, and is 0 of a distribution from itself.
func TestDivergence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		vocab := 1 + r.IntN(40)
		a, b := logits(r, vocab), logits(r, vocab)
		p, q := newRow(a), newRow(b)
		got := divergence(&p, &q)
		require.GreaterOrEqual(t, got, 0.0)
		require.False(t, math.IsNaN(got) || math.IsInf(got, 0))
		require.Zero(t, divergence(&p, &p))
		if want := naiveDivergence(a, b); !math.IsNaN(want) && !math.IsInf(want, 0) {
			require.InDelta(t, want, got, 1e-9*max(1, want))
		}
		near := slices.Clone(a)
		for i := range near {
			near[i] = math.Nextafter32(near[i], float32(r.NormFloat64()*1e9))
		}
		n := newRow(near)
		require.GreaterOrEqual(t, divergence(&p, &n), 0.0)
	}
}

// naiveDivergence is the definition, with probabilities that may underflow.
func naiveDivergence(a, b []float32) float64 {
	softmax := func(row []float32) []float64 {
		out, sum := make([]float64, len(row)), 0.0
		most := float64(slices.Max(row))
		for i, v := range row {
			out[i] = math.Exp(float64(v) - most)
			sum += out[i]
		}
		for i := range out {
			out[i] /= sum
		}
		return out
	}
	p, q := softmax(a), softmax(b)
	sum := 0.0
	for i := range p {
		if p[i] > 0 {
			sum += p[i] * math.Log(p[i]/q[i])
		}
	}
	return sum
}

// Who expects every token alike has the vocabulary for a perplexity, whatever follows and whatever the logits are.
func TestUniform(t *testing.T) {
	for _, vocab := range []int{1, 2, 7, 512, 100_003} {
		for _, at := range []float32{0, -3, 1e30} {
			row := make([]float32, vocab)
			for i := range row {
				row[i] = at
			}
			var found tally
			for next := range min(vocab, 5) {
				found.add(row, row, next)
			}
			r := found.report()
			if at < 1e30 { // of which float64 has no room for a logarithm after the point
				require.InEpsilon(t, float64(vocab), r.Perplexity.Model, 1e-12)
			}
			require.Equal(t, r.Perplexity.Model, r.Perplexity.Against)
			require.Zero(t, r.KL)
			require.Zero(t, r.Logits)
			require.Equal(t, 1.0, r.Agreement)
		}
	}
}

// What cannot be larger stays a number that JSON has.
func TestHugeLoss(t *testing.T) {
	var found tally
	found.add([]float32{math.MaxFloat32, -math.MaxFloat32}, []float32{0, 0}, 1)
	r := found.report()
	require.Equal(t, math.MaxFloat64, r.Perplexity.Model)
	require.False(t, math.IsInf(r.KL.Max, 0) || math.IsNaN(r.KL.Max))
}

// numpy.quantile of the same numbers.
func TestQuantile(t *testing.T) {
	require.Equal(t, 5.0, quantile([]float64{5}, 0.99))
	require.InDelta(t, 3.97, quantile([]float64{1, 2, 3, 4}, 0.99), 1e-12)
	require.InDelta(t, 2.5, quantile([]float64{1, 2, 3, 4}, 0.5), 1e-12)
	sorted := make([]float64, 1001)
	for i := range sorted {
		sorted[i] = float64(i)
	}
	require.InDelta(t, 990, quantile(sorted, 0.99), 1e-9)
	require.Equal(t, 1000.0, quantile(sorted, 1))
}

func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		row []float32
		id  int
	}{{[]float32{0, nan}, 1}, {[]float32{inf, 0}, 0}, {[]float32{0, 0, -inf, nan}, 2}} {
		id, found := notFinite(c.row)
		require.True(t, found)
		require.Equal(t, c.id, id)
	}
	_, found := notFinite([]float32{math.MaxFloat32, -math.MaxFloat32, 0})
	require.False(t, found)
}
