package sampling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Score returns the choice of a token that the kernel chose at a position, with its log-probability and the wanted
// number of largest ones, which equal those of a [Sampler]. Logits without a choice are a *LogitsError.
func Score(logits []float32, id, wanted, position int) (Choice, error) {
	c, err := Given(logits, id, wanted, position)
	if err == nil && math.IsInf(c.LogProb, -1) {
		err = &LogitsError{position, fmt.Sprintf("token %d was chosen, and is impossible", id)}
	}
	return c, err
}

// Given is Score for a token that was not chosen, such as one of a prompt. The log-probability of an impossible token
// is -Inf.
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
	highest, sum := float64(slices.Max(logits)), 0.0
	best := largest{wanted, room[:0]}
	for id, x := range logits {
		x := float64(x)
		if x == never {
			continue
		}
		sum += exp(x - highest)
		best.offer(candidate{id: id, x: x})
	}
	if math.IsInf(highest, -1) { // nothing is possible
		return never, nil, best.heap
	}
	norm := highest + ln(sum)
	slices.SortFunc(best.heap, likelier)
	for _, t := range best.heap {
		top = append(top, LogProb{t.id, t.x - norm})
	}
	return float64(logits[chosen]) - norm, top, best.heap
}

// largest keeps the k largest candidates that it is offered, of equals those that come first. Once there are k, they
// are a heap with the last of them in front.
type largest struct {
	k    int
	heap []candidate
}

func (l *largest) offer(t candidate) {
	switch {
	case len(l.heap) < l.k:
		if l.heap = append(l.heap, t); len(l.heap) == l.k {
			slices.SortFunc(l.heap, func(a, b candidate) int { return likelier(b, a) })
		}
	case l.k > 0 && t.x > l.heap[0].x:
		l.heap[0] = t
		settle(l.heap)
	}
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
