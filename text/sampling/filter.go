package sampling

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A candidate is a token that may be drawn.
type candidate struct {
	id int
	x  float64 // its score
	// only where a filter needs them
	y float64 // x less the largest score, divided by the temperature: 0 or less
	e float64 // e^y
}

// filter leaves in s.kept what may be drawn, by ascending id. largest is the largest score.
func (s *Sampler) filter(largest float64) {
	kept := s.kept[:0]
	for id, x := range s.scores {
		if x > never {
			kept = append(kept, candidate{id: id, x: x})
		}
	}
	kept = topK(kept, s.o.TopK)
	if s.o.TopP < 1 || s.o.MinP > 0 {
		for i := range kept {
			t := &kept[i]
			t.y = (t.x - largest) / s.o.Temperature
			t.e = exp(t.y)
		}
		kept = topP(kept, s.o.TopP, s.vocab)
		kept = slices.DeleteFunc(kept, func(t candidate) bool { return t.e < s.o.MinP })
	}
	s.kept = kept
}

// topK keeps the k largest, and all that equal the last of them.
func topK(c []candidate, k int) []candidate {
	if k == 0 || k >= len(c) {
		return c
	}
	best := largest{k: k}
	for _, t := range c {
		best.offer(t)
	}
	return slices.DeleteFunc(c, func(t candidate) bool { return t.x < best.heap[0].x })
}

// ahead orders candidates from the most probable on. Of equals the higher id comes first, as it comes last where
// transformers sorts upwards.
func ahead(a, b candidate) int { return cmp.Or(cmp.Compare(b.x, a.x), cmp.Compare(b.id, a.id)) }

// numBuckets is how many parts topP cuts the range of y into, each 1 wide but for the last: below -45 nothing weighs.
const numBuckets = 46

func bucket(y float64) int {
	if y <= 1-numBuckets {
		return numBuckets - 1
	}
	return int(-y)
}

// topP removes, from the least probable on, what has a share of at most 1-p together, and keeps at least the most
// probable one. In other words it keeps a token if those ahead of it weigh at most `most`. Only the tokens of the
// bucket in which that ends are sorted.
func topP(c []candidate, p float64, vocab int) []candidate {
	if p >= 1 {
		return c
	}
	one := one(vocab)
	var sums [numBuckets]uint64
	var total uint64
	for _, t := range c {
		w := weight(t.e, one)
		sums[bucket(t.y)] += w
		total += w
	}
	most := int64(total) - int64(share(1-p, total)) - 1
	last, sum := 0, uint64(0) // the bucket, and what the ones ahead of it weigh
	for int64(sum+sums[last]) <= most {
		sum += sums[last]
		last++
	}
	var inside []candidate
	for _, t := range c {
		if bucket(t.y) == last {
			inside = append(inside, t)
		}
	}
	slices.SortFunc(inside, ahead)
	end := inside[0] // the last one that is kept
	for _, t := range inside {
		if int64(sum) > most {
			break
		}
		end = t
		sum += weight(t.e, one)
	}
	return slices.DeleteFunc(c, func(t candidate) bool { return ahead(end, t) < 0 })
}

// one returns the weight of the most probable of n tokens: a power of two, so that weights of all of them add up
// to 2^62 at most.
func one(vocab int) float64 { return math.Ldexp(1, 62-bits.Len(uint(vocab-1))) }

// weight makes an integer of e^y. Sums of weights do not depend on their order.
func weight(e, one float64) uint64 { return uint64(math.RoundToEven(e * one)) }

// share returns the largest integer that is not above q times total, of 0 <= q <= 1 and total < 2^63.
func share(q float64, total uint64) uint64 {
	mantissa, exponent := math.Frexp(q)
	high, low := bits.Mul64(uint64(math.Ldexp(mantissa, 53)), total)
	switch shift := uint(53 - exponent); {
	case shift >= 128:
		return 0
	case shift >= 64:
		return high >> (shift - 64)
	default:
		return high<<(64-shift) | low>>shift
	}
}
