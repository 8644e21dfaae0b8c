package quality

import (
	"math"
	"slices"
)

// A tally adds up what the predictions of two models have shown so far. It keeps a number for each prediction, for the
// quantile, and no logits.
type tally struct {
	loss, againstLoss float64   // sums of -log p(token), in nats
	divergences       []float64 // of each prediction, in nats
	agreed            int       // predictions with the same most probable token
	difference        float64   // sum of the magnitudes of the differences of logits
	largest           float64
	logits            int // of each side
}

// A row is the logits after a token, with what makes a distribution of them.
type row struct {
	logits []float32
	top    int     // the largest, the lowest id among equals
	logSum float64 // log Σ exp(logit), so that log p(id) is logit - logSum
}

// newRow reads the logits; they are finite.
func newRow(logits []float32) row {
	r := row{logits: logits}
	for i, v := range logits {
		if v > logits[r.top] {
			r.top = i
		}
	}
	most, sum := float64(logits[r.top]), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	r.logSum = most + math.Log(sum)
	return r
}

// loss is -log p(id).
func (r *row) loss(id int) float64 { return r.logSum - float64(r.logits[id]) }

// divergence is Σ p (log p - log q) of the distributions p and q, in nats. It is never negative; what the roundings of
// the sum leave below 0 is 0.
func divergence(p, q *row) float64 {
	sum := 0.0
	for i, v := range p.logits {
		logP := float64(v) - p.logSum
		logQ := float64(q.logits[i]) - q.logSum
		sum += math.Exp(logP) * (logP - logQ)
	}
	return max(0, sum)
}

// add takes the logits of both sides after the same token, and the token that followed.
func (t *tally) add(model, against []float32, next int) {
	q, p := newRow(model), newRow(against)
	t.loss += q.loss(next)
	t.againstLoss += p.loss(next)
	t.divergences = append(t.divergences, divergence(&p, &q))
	if p.top == q.top {
		t.agreed++
	}
	for i, v := range model {
		d := math.Abs(float64(v) - float64(against[i]))
		t.difference += d
		t.largest = max(t.largest, d)
	}
	t.logits += len(model)
}

// report says what was found of at least one prediction.
func (t *tally) report() *Report {
	n := float64(len(t.divergences))
	r := &Report{
		Tokens:     len(t.divergences),
		Perplexity: Perplexity{perplexity(t.loss / n), perplexity(t.againstLoss / n)},
		Agreement:  float64(t.agreed) / n,
		Logits:     Difference{Mean: t.difference / float64(t.logits), Max: t.largest},
	}
	slices.Sort(t.divergences)
	r.KL.P99, r.KL.Max = quantile(t.divergences, 0.99), t.divergences[len(t.divergences)-1]
	for _, d := range t.divergences {
		r.KL.Mean += d / n
	}
	return r
}

// perplexity is exp of a mean loss. What float64 cannot hold is its largest number, which JSON can.
func perplexity(loss float64) float64 { return min(math.Exp(loss), math.MaxFloat64) }

// quantile interpolates between the two nearest of sorted values, as NumPy does.
func quantile(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// notFinite returns the first id whose logit is not a finite number, and whether there is one.
func notFinite(logits []float32) (id int, found bool) {
	for i, v := range logits {
		if v-v != 0 {
			return i, true
		}
	}
	return 0, false
}
