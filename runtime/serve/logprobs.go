package serve

import (
	"math"
	"slices"
)

// leastLogprob stands for the logarithm of 0, which JSON does not have.
const leastLogprob = -9999

// An alternative is a token with the natural logarithm of its probability.
type alternative struct {
	id      int
	logprob float64
}

// A chosen token with its logprob, and those of the most likely ones.
type chosen struct {
	alternative
	top []alternative // the most likely first, the lower id first among equals
}

// logprobs returns what the model, before anything is done to its logits, made of the chosen token, and the n tokens
// that it found most likely.
func logprobs(logits []float32, token, n int) chosen {
	normal := logSum(logits)
	of := func(id int) alternative {
		p := float64(logits[id]) - normal
		if math.IsNaN(p) || p < leastLogprob {
			p = leastLogprob
		}
		return alternative{id, p}
	}
	out := chosen{alternative: of(token)}
	if n == 0 {
		return out
	}
	best := make([]int, 0, n+1)
	for id, x := range logits {
		if x != x || len(best) == n && x <= logits[best[n-1]] { // x != x: it is not a number
			continue
		}
		at, _ := slices.BinarySearchFunc(best, x, func(id int, x float32) int {
			if logits[id] >= x {
				return -1
			}
			return 1
		})
		if best = slices.Insert(best, at, id); len(best) > n {
			best = best[:n]
		}
	}
	for _, id := range best {
		out.top = append(out.top, of(id))
	}
	return out
}

// logSum is the logarithm of the sum of the exponentials.
func logSum(logits []float32) float64 {
	top := float64(logits[argmax(logits)])
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	return top + math.Log(sum)
}
