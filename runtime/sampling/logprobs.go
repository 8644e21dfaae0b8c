package sampling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Score is the choice of a token that was chosen elsewhere, by the kernel, at a position: with its log-probability and
// as many of the largest as are wanted, to those that a [Sampler] says. Logits that leave it none are a *LogitsError.
func Score(logits []float32, id, wanted, position int) (Choice, error) {
	if err := checkLogits(logits, position); err != nil {
		return Choice{}, err
	}
	if id < 0 || id >= len(logits) || math.IsInf(float64(logits[id]), -1) {
		return Choice{}, &LogitsError{position, fmt.Sprintf("token %d was chosen, and is impossible", id)}
	}
	c := Choice{ID: id}
	c.LogProb, c.Top, _ = logProbs(logits, id, wanted, make([]candidate, 0, len(logits)))
	return c, nil
}

// logProbs returns log_softmax of the logits for a token and for some of the largest. all is room for candidates, which
// comes back to be used again.
func logProbs(logits []float32, chosen, wanted int, all []candidate) (of float64, top []LogProb, _ []candidate) {
	largest, sum := float64(slices.Max(logits)), 0.0
	for id, x := range logits {
		if x := float64(x); x > never {
			sum += exp(x - largest)
			all = append(all, candidate{id: id, x: x})
		}
	}
	norm := largest + ln(sum)
	if wanted > 0 {
		all = topK(all, wanted)
		slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.x, a.x), cmp.Compare(a.id, b.id)) })
		for _, t := range all[:min(wanted, len(all))] {
			top = append(top, LogProb{t.id, t.x - norm})
		}
	}
	return float64(logits[chosen]) - norm, top, all
}
