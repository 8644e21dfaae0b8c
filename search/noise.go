package search

import (
	"fmt"
	"math"
	"slices"
)

// An Interval is an estimate and its 95 % confidence interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Sample is one opening's worth of interleaved measurements at a position: medians in microseconds per token, one a
// round. Baseline and Twin are the same build, opened twice.
type Sample struct {
	Candidate, Baseline, Twin []float64
}

// Ratios compares candidate and baseline. samples[position][opening] are measurements; the baseline's time is the
// geometric mean of its own and its twin's.
//
// Openings are what is independent: where weights and cache lie in memory changes a time by up to 2 % and stays as it
// is until a build is opened anew, so that more rounds of one opening only repeat its error. So an interval is that of
// Student's t over openings, and a single opening has none: it reaches from 0 to infinity.
func Ratios(samples [][]Sample) (at []Interval, all Interval, band float64) {
	openings := 0
	for _, position := range samples {
		openings = max(openings, len(position))
	}
	sums, counts := make([]float64, openings), make([]int, openings)
	for _, position := range samples {
		var logs []float64
		for k, s := range position {
			base, twin := meanLog(s.Baseline), meanLog(s.Twin)
			log := meanLog(s.Candidate) - (base+twin)/2
			logs = append(logs, log)
			sums[k] += log
			counts[k]++
			band = max(band, math.Abs(math.Expm1(base-twin)))
		}
		at = append(at, interval(logs))
	}
	means := make([]float64, openings)
	for k := range means {
		means[k] = sums[k] / float64(counts[k])
	}
	return at, interval(means), band
}

func meanLog(times []float64) float64 {
	sum := 0.0
	for _, t := range times {
		sum += math.Log(t)
	}
	return sum / float64(len(times))
}

// interval is that of Student's t for the mean of logarithms, as ratios.
func interval(logs []float64) Interval {
	n := float64(len(logs))
	mean, squares := 0.0, 0.0
	for _, l := range logs {
		mean += l / n
	}
	for _, l := range logs {
		squares += (l - mean) * (l - mean)
	}
	if len(logs) < 2 {
		return Interval{math.Exp(mean), 0, math.MaxFloat64}
	}
	half := student(len(logs)-1) * math.Sqrt(squares/(n-1)/n)
	return Interval{math.Exp(mean), math.Exp(mean - half), min(math.Exp(mean+half), math.MaxFloat64)}
}

// student is the 97.5 % point of Student's t distribution.
func student(freedom int) float64 {
	points := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
		2.145,
		2.131, 2.120, 2.110, 2.101, 2.093, 2.086}
	if freedom <= len(points) {
		return points[freedom-1]
	}
	return 1.96 + 2.5/float64(freedom) // within 0.2 % from 21 on
}

// Rules are what a campaign decides by.
type Rules struct {
	MinGain float64 `json:"min_gain"` // a gain below this part is none: 0.01
	// Bracket configurations are screened together, and one in Eta goes on to the next rung.
	Bracket int `json:"bracket"`
	Eta     int `json:"eta"`
	// A region is left when so many trials in it, one after another, gained nothing.
	Plateau int `json:"plateau"`
	// Nothing is left to find where the baseline is as near to its ceiling as this.
	NearCeiling float64 `json:"near_ceiling"`
	// A value of a knob is retired when so many trials with it ended in the same way, with a crash or too late.
	Crashes int `json:"crashes"`
	// A campaign ends when so many hops, one after another, have led to nothing better. 0: it goes on.
	Hops int `json:"hops"`
}

// DefaultRules are those of a campaign that says nothing else. A gain of 1 %, a plateau of 12 trials and three crashes
// are the playbook's. Its 85 % are of what a data sheet promises; here a ceiling is simulated or measured with the same
// ring, and what is left below it can be found up to the gain that counts.
func DefaultRules() Rules {
	return Rules{MinGain: 0.01, Bracket: 9, Eta: 3, Plateau: 12, NearCeiling: 0.99, Crashes: 3, Hops: 3}
}

// Decide sets the decision of a verdict by its class, its rung and its times, and says why. A verdict without times is
// reverted.
func (r *Rules) Decide(v *Verdict) {
	v.Decision = Revert
	switch {
	case v.Class != Pass:
		v.Why = fmt.Sprintf("%s: %s", v.Class, v.Reason.Msg)
		return
	case v.Device == DeviceCost:
		r.decidePredicted(v)
		return
	}
	v.Threshold = max(r.MinGain, v.Band)
	worse := slices.IndexFunc(v.At, func(a At) bool { return a.Ratio.High > 1+v.Threshold })
	switch {
	case v.Rung != Final && v.Ratio.Low > 1+v.Threshold:
		v.Why = "slower than its baseline"
	case v.Rung != Final:
		v.Decision, v.Why = Promising, "not shown to be slower"
	case v.Ratio.High >= 1-v.Threshold:
		v.Why = fmt.Sprintf("the ratio may be as much as %.4f; want less than %.4f", v.Ratio.High, 1-v.Threshold)
	case worse >= 0:
		v.Why = fmt.Sprintf("at position %d the ratio may be as much as %.4f; want at most %.4f", v.At[worse].Position,
			v.At[worse].Ratio.High, 1+v.Threshold)
	default:
		v.Decision, v.Why = Keep, fmt.Sprintf("the ratio is at most %.4f", v.Ratio.High)
	}
}

// decidePredicted decides by predictions, which have no noise and an error of their own: a prediction shortlists, and
// its interval says how little it means.
func (r *Rules) decidePredicted(v *Verdict) {
	v.Threshold = r.MinGain
	worse := slices.IndexFunc(v.At, func(a At) bool { return a.Ratio.Mean > 1+v.Threshold })
	switch {
	case v.Rung != Final && v.Ratio.Mean > 1+v.Threshold:
		v.Why = "predicted to be slower"
	case v.Rung != Final:
		v.Decision, v.Why = Promising, "not predicted to be slower"
	case v.Ratio.Mean >= 1-v.Threshold:
		v.Why = fmt.Sprintf("the predicted ratio is %.4f; want less than %.4f", v.Ratio.Mean, 1-v.Threshold)
	case worse >= 0:
		v.Why = fmt.Sprintf("the predicted ratio at position %d is %.4f; want at most %.4f", v.At[worse].Position,
			v.At[worse].Ratio.Mean, 1+v.Threshold)
	default:
		v.Decision, v.Why = Shortlist, fmt.Sprintf("the predicted ratio is %.4f", v.Ratio.Mean)
	}
}
