package serve

import "math"

// A Sampler chooses the tokens of one sequence.
type Sampler interface {
	// Choose returns the token that the sequence goes on with. logits [vocab] are its to change; history is the prompt
	// and what was chosen since, and stays the caller's.
	Choose(logits []float32, history []int) (token int, err error)
}

// biased chooses the largest logit after it has added a bias to some, the lowest id among equals.
type biased map[int]float32

func (b biased) Choose(logits []float32, _ []int) (int, error) {
	for id, bias := range b {
		logits[id] += bias
	}
	return argmax(logits), nil
}

// argmax is the index of the largest number, the lowest among equals; 0 where there is no number.
func argmax(logits []float32) int {
	best, top := 0, float32(math.Inf(-1))
	for i, x := range logits {
		if x > top {
			best, top = i, x
		}
	}
	return best
}
