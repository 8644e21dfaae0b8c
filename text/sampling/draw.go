package sampling

import (
	"math"
	"math/bits"
)

// A draw takes the token with the largest sum of its score, divided by the temperature, and Gumbel noise, -ln E with E
// from the exponential distribution: each token wins with the probability that softmax gives it. No token has to know
// of the others, so that a kernel can look for the largest sum as it looks for the largest logit.
//
// Everything in this file is exact: each step is one correctly rounded operation on float64, a fused multiply-add, or
// an operation on integers, so that any machine, a GPU too, comes to the same bits. docs/sampling.md says it again in
// words, and testdata/draw.py in Python.

// pick returns the candidate with the largest sum, the lowest id among equals. Candidates are in the order of ids.
func pick(c []candidate, temperature float64, seed uint64, position int) int {
	id, best := -1, never
	pair, words := -1, [4]uint32{}
	for _, t := range c {
		if t.id>>1 != pair {
			pair = t.id >> 1
			words = noise(seed, position, pair)
		}
		x, v := t.x/temperature, uniform(words, t.id)
		// E is v or more, so that the noise is at most ln2 times one more than the zeros that v begins with. The bound
		// is a little above that, and its sum rounds to no less than the real one: what it skips cannot win.
		if x+float64(0.6932*float64(54-bits.Len64(v))) < best {
			continue
		}
		if sum := x + gumbel(v); sum > best {
			id, best = t.id, sum
		}
	}
	return id
}

// noise returns the random words of two tokens, 2*pair and the one after it, at a position.
func noise(seed uint64, position, pair int) [4]uint32 {
	p := uint64(position)
	return philox([4]uint32{uint32(pair), 0, uint32(p), uint32(p >> 32)},
		[2]uint32{uint32(seed), uint32(seed >> 32)})
}

// uniform returns a token's odd number below 2^53, out of the words of its pair. In units of 2^-53 it is uniform
// between 0 and 1, and so fine near 0 that the noise reaches 36.7.
func uniform(words [4]uint32, token int) uint64 {
	i := token & 1 * 2
	return (uint64(words[i+1])<<32|uint64(words[i]))>>12<<1 | 1
}

// gumbel returns -ln E, with E = -ln(1-v) of the v that is given in units of 2^-53. 1-v is exact.
func gumbel(v uint64) float64 { return -ln(-ln(float64(1<<53-v) * 0x1p-53)) }

// philox is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		high0, low0 := bits.Mul32(0xD2511F53, counter[0])
		high1, low1 := bits.Mul32(0xCD9E8D57, counter[2])
		counter = [4]uint32{high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return counter
}

// ln2 in two parts. The first has so few bits that its product with a small integer is exact.
const (
	ln2High = 0x1.62e42fee00000p-1
	ln2Low  = 0x1.a39ef35793c76p-33
)

// factorials holds 1/n!, from n = 13 down to 0. On |r| <= ln2/2 what follows is below half of the last bit.
var factorials = [...]float64{1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
	1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1}

// exp returns e^y of y <= 0, and exactly 1 of 0. math.Exp is another function on every architecture.
func exp(y float64) float64 {
	if y < -700 {
		return 0 // far below any weight
	}
	k := math.RoundToEven(y * math.Log2E)
	r := math.FMA(-k, ln2High, y)
	r = math.FMA(-k, ln2Low, r)
	p := factorials[0]
	for _, c := range factorials[1:] {
		p = math.FMA(p, r, c)
	}
	return math.Ldexp(p, int(k))
}

// odds holds 1/n of odd n, from 23 down to 3.
var odds = [...]float64{1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5,
	1.0 / 3}

// ln returns the natural logarithm of x > 0 that is not subnormal: with x = 2^k m, m between sqrt(1/2) and sqrt(2), and
// s = (m-1)/(m+1), it is k ln2 + 2 (s + s^3/3 + s^5/5 + ...).
func ln(x float64) float64 {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		k--
	}
	f := m - 1
	s := f / (2 + f)
	z := s * s
	p := odds[0]
	for _, c := range odds[1:] {
		p = math.FMA(p, z, c)
	}
	s2, e := 2*s, float64(k)
	low := math.FMA(e, ln2Low, float64(s2*float64(z*p)))
	return math.FMA(e, ln2High, s2+low)
}
