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
	c, err := Given(logits, id, wanted, position)
	if err == nil && math.IsInf(c.LogProb, -1) {
		err = &LogitsError{position, fmt.Sprintf("token %d was chosen, and is impossible", id)}
	}
	return c, err
}

// Given is the same of a token that nobody has chosen, as one of a prompt. The log-probability of one that is
// impossible is -Inf.
func Given(logits []float32, id, wanted, position int) (Choice, error) {
	if err := checkLogits(logits, position); err != nil {
		return Choice{}, err
	}
	if id < 0 || id >= len(logits) {
		return Choice{}, &LogitsError{position, fmt.Sprintf("there is no token %d", id)}
	}
	c := Choice{ID: id}
	c.LogProb, c.Top, _ = logProbs(logits, id, wanted, nil)
	return c, nil
}

// logProbs returns log_softmax of the logits for a token and for some of the largest. room is for as many candidates,
// and comes back to be used again.
func logProbs(logits []float32, chosen, wanted int, room []candidate) (of float64, top []LogProb, _ []candidate) {
	largest, sum := float64(slices.Max(logits)), 0.0
	best := room[:0] // the largest so far; once they are as many as are wanted, a heap with the last of them in front
	for id, x := range logits {
		x := float64(x)
		if x == never {
			continue
		}
		sum += exp(x - largest)
		switch t := (candidate{id: id, x: x}); {
		case len(best) < wanted:
			if best = append(best, t); len(best) == wanted {
				slices.SortFunc(best, func(a, b candidate) int { return likelier(b, a) })
			}
		case wanted > 0 && x > best[0].x: // of equals the one that came first stays
			best[0] = t
			settle(best)
		}
	}
	if math.IsInf(largest, -1) { // nothing is possible
		return never, nil, best
	}
	norm := largest + ln(sum)
	slices.SortFunc(best, likelier)
	for _, t := range best {
		top = append(top, LogProb{t.id, t.x - norm})
	}
	return float64(logits[chosen]) - norm, top, best
}

// likelier orders candidates from the most probable on, and equals by their ids.
func likelier(a, b candidate) int { return cmp.Or(cmp.Compare(b.x, a.x), cmp.Compare(a.id, b.id)) }

// settle moves the first element of a heap of the least likely down to where it belongs.
func settle(heap []candidate) {
	for i := 0; ; {
		last := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && likelier(heap[child], heap[last]) > 0 {
				last = child
			}
		}
		if last == i {
			return
		}
		heap[i], heap[last] = heap[last], heap[i]
		i = last
	}
}
