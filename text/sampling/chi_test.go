package sampling

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// draws returns how many draws a statistical test makes of each setting, a million under AMKC_LONG.
func draws() int {
	if os.Getenv("AMKC_LONG") != "" {
		return 1_000_000
	}
	return 20_000
}

// chiSquared compares counts with probabilities. Each token is a bin, but for those that less than 10 draws are
// expected of, which are one bin together. It returns how many standard deviations the statistic is above its mean, by
// the approximation of Wilson and Hilferty, and how many bins there are.
func chiSquared(counts []int, p []float64) (z float64, bins int) {
	n := 0
	for _, c := range counts {
		n += c
	}
	sum, rest, restWant := 0.0, 0.0, 0.0
	add := func(have, want float64) {
		sum += (have - want) * (have - want) / want
		bins++
	}
	for i, c := range counts {
		if want := p[i] * float64(n); want >= 10 {
			add(float64(c), want)
		} else {
			rest, restWant = rest+float64(c), restWant+want
		}
	}
	if restWant >= 10 {
		add(rest, restWant)
	}
	if bins < 2 {
		return 0, bins
	}
	df := float64(bins - 1)
	return (math.Cbrt(sum/df) - 1 + 2/(9*df)) / math.Sqrt(2/(9*df)), bins
}

// outlier is a number of standard deviations that a test of a true distribution exceeds once in 30,000 times.
const outlier = 4

// What is drawn of fixed logits has the distribution that a softmax in float64 gives to what transformers' processors
// leave. One half of the draws are of one seed at many positions, the other of many seeds at one position.
func TestDrawsHaveTheDistributionOfTransformers(t *testing.T) {
	most := 12
	if os.Getenv("AMKC_LONG") != "" {
		most = 60
	}
	settings, worst, bins := 0, 0.0, 0
	for i, c := range processorCases(t) {
		if len(c.Kept) < 4 || settings == most {
			continue
		}
		settings++
		o := c.options()
		s := c.sampler(t, o)
		s.filter(s.scores[s.score(c.logits(), c.mask())])
		p := make([]float64, len(c.Logits))
		for j, id := range c.Kept {
			p[id] = c.Probabilities[j]
		}
		counts := make([]int, len(c.Logits))
		for d := range draws() / 2 {
			counts[pick(s.kept, o.Temperature, uint64(i), d)]++
			counts[pick(s.kept, o.Temperature, uint64(d)<<20, i)]++
		}
		for id, n := range counts {
			require.False(t, n > 0 && p[id] == 0, "case %d drew token %d, which is not kept", i, id)
		}
		z, b := chiSquared(counts, p)
		require.Less(t, z, float64(outlier), "case %d, %d bins", i, b)
		worst, bins = max(worst, z), bins+b
	}
	require.Equal(t, most, settings)
	t.Logf("%d settings of %d draws, %d bins; the worst is %.2f standard deviations from its mean", settings, draws(),
		bins, worst)
}

// The test above would find a temperature that is 10 % off, and far less with a million draws.
func TestChiSquaredFindsOtherDistributions(t *testing.T) {
	scores := []float64{0, -0.5, -1, -2, -3, 0.25}
	p, wrong := softmax(scores, 0.8), softmax(scores, 0.88)
	counts := make([]int, len(scores))
	for d := range 20_000 {
		counts[pick(candidatesOf(scores), 0.8, 1, d)]++
	}
	z, _ := chiSquared(counts, p)
	require.Less(t, z, float64(outlier))
	z, _ = chiSquared(counts, wrong)
	require.Greater(t, z, float64(outlier))
}

func softmax(scores []float64, temperature float64) []float64 {
	p, sum := make([]float64, len(scores)), 0.0
	for i, x := range scores {
		p[i] = math.Exp(x / temperature)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Draws at neighbouring positions, and of neighbouring seeds, are independent: pairs have the product of the
// distributions.
func TestDrawsAreIndependent(t *testing.T) {
	scores := []float64{0, -0.5, -1, 0.5, -1.5}
	p := softmax(scores, 1)
	joint := make([]float64, len(p)*len(p))
	for i := range p {
		for j := range p {
			joint[i*len(p)+j] = p[i] * p[j]
		}
	}
	c := candidatesOf(scores)
	for name, next := range map[string]func(d int) (seed uint64, position int){
		"position": func(d int) (uint64, int) { return 11, d },
		"seed":     func(d int) (uint64, int) { return uint64(d), 11 },
	} {
		counts := make([]int, len(joint))
		for d := range draws() {
			seedA, positionA := next(2 * d)
			seedB, positionB := next(2*d + 1)
			counts[pick(c, 1, seedA, positionA)*len(p)+pick(c, 1, seedB, positionB)]++
		}
		z, bins := chiSquared(counts, joint)
		require.Equal(t, len(joint), bins)
		require.Less(t, z, float64(outlier), name)
	}
}

// Of a large vocabulary, improbable tokens are drawn as often as they should be: noise that is coarse near 0 would
// show here. One token has half of the share, 2^16 or more others have the rest.
func TestManyImprobableTokens(t *testing.T) {
	vocab, n := 1<<13, 400
	if os.Getenv("AMKC_LONG") != "" {
		vocab, n = 1<<17, 3000
	}
	scores := make([]float64, vocab)
	scores[0] = math.Log(float64(vocab - 1))
	counts := make([]int, 17) // the first token, and ranges of ids
	c := candidatesOf(scores)
	for d := range n {
		id := pick(c, 1, 5, d)
		if id == 0 {
			counts[16]++
		} else {
			counts[id*16/vocab]++
		}
	}
	p := make([]float64, 17)
	for i := range 16 {
		p[i] = 0.5 / 16
	}
	p[16] = 0.5
	z, bins := chiSquared(counts, p)
	require.Equal(t, 17, bins)
	require.Less(t, z, float64(outlier))
}
