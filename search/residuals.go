package search

import (
	"math"
	"strconv"

	"amkc/knobs"
	"amkc/search/prior"
)

// residualFolds is in how many parts the trials are left out, one after another, to see whether residuals are better
// than none.
const residualFolds = 5

// residuals are what the campaign's own trials have shown of the cost model's errors, on this model and this GPU: what
// has to be added to the logarithm of a predicted ratio, by values of knobs. They are used once they tell trials that
// are left out better than the predictions alone. learnt is what was added to these before.
func (s *State) residuals(learnt *prior.Learnt) prior.Learnt {
	var rows []prior.Row
	part := map[string]int{} // by id: the same settings are left out together
	for i := range s.trials {
		v := s.trials[i].Verdict
		if v == nil || v.Timing == nil || v.Device != DeviceCUDA || v.Stage != s.campaign.Stage {
			continue
		}
		y, n := 0.0, 0.0
		for _, at := range v.At {
			p := at.Predicted
			if p == nil || p.Candidate <= 0 || p.Baseline <= 0 {
				continue
			}
			y += math.Log(at.Ratio.Mean) - math.Log(p.Candidate/p.Baseline)
			if learnt.Used {
				y -= learnt.At(p.Traits)
			}
			n++
		}
		x := s.apart(v.Settings, v.Baseline)
		if n == 0 || len(x) == 0 {
			continue
		}
		if _, is := part[v.ID]; !is {
			part[v.ID] = len(part) % residualFolds
		}
		rows = append(rows, prior.Row{Model: strconv.Itoa(part[v.ID]), X: x, Y: y / n})
	}
	return prior.FitTimes(rows)
}

// apart is by which values of knobs settings differ, defaults included: 1 for a value that the first have and the
// others have not, and -1 for one the other way round.
func (s *State) apart(of, from knobs.Settings) map[string]float64 {
	x := map[string]float64{}
	for i := range s.campaign.Space.Knobs {
		k := &s.campaign.Space.Knobs[i]
		if is, was := k.value(of), k.value(from); is != was {
			x[k.Path+"="+string(is)]++
			x[k.Path+"="+string(was)]--
		}
	}
	return x
}
