package search

import (
	"fmt"
	"slices"

	"amkc/ir/diag"
)

// Rules are what a campaign decides by.
type Rules struct {
	MinGain float64 `json:"min_gain"` // a gain below this part is none: 0.01
	// Step is the least gain for which the incumbent of a basin is replaced: 0.005. It may be below MinGain, since
	// several such steps can add up to a gain that counts. 0: only what counts replaces it.
	Step float64 `json:"step,omitempty"`
	// Bracket configurations are screened together, and one in Eta goes on to the next rung.
	Bracket int `json:"bracket"`
	Eta     int `json:"eta"`
	// A region is left when so many trials in it, one after another, gained nothing.
	Plateau int `json:"plateau"`
	// A basin is left when so many brackets, one after another, gained nothing.
	Barren int `json:"barren"`
	// A value of a knob is retired when so many trials with it ended in the same way, with a crash or too late.
	Crashes int `json:"crashes"`
	// A campaign ends when so many hops, one after another, have led to nothing better. 0: it goes on.
	Hops int `json:"hops"`
}

// enough is how many times as fast as the defaults the best of a campaign is when it ends: the playbook's.
const enough = 3

// DefaultRules are those of a campaign that says nothing else. A gain of 1 %, a plateau of 12 trials and three crashes
// are the playbook's.
func DefaultRules() Rules {
	return Rules{MinGain: 0.01, Step: 0.005, Bracket: 9, Eta: 3, Plateau: 12, Barren: 3, Crashes: 3, Hops: 3}
}

// noisiest is how far a build and its identical twin may differ in an opening, if anything is to be kept by it: twice
// what their places in memory account for. A band that is wider would let a candidate be as much slower at a position.
const noisiest = 0.04

// disturbed reports whether the twins of a measured step differ by too much. A stage by itself is short, and differs by
// more; nothing is adopted by its times.
func (v *Verdict) disturbed() bool {
	return v.Device == DeviceCUDA && v.Stage == "" && v.Timing != nil && !(max(v.Band, v.Spread) <= noisiest)
}

// Undecided reports whether times seem to show a gain that counts, and do not show it beyond the noise: whether more
// openings may tell. They do not where a position is shown to lose what counts.
func (r *Rules) Undecided(v *Verdict) bool {
	of := *v
	timing := *v.Timing
	of.Timing = &timing
	r.Decide(&of)
	loses := slices.ContainsFunc(of.At, func(a At) bool { return a.Ratio.Low > 1+of.Threshold })
	return of.Decision != Keep && of.Ratio.Mean < 1-r.MinGain && !of.disturbed() && !loses
}

// placed is a reason with what it is about: a knob, a position, a stage.
func placed(d *diag.Diagnostic) string {
	if d.Pos == "" {
		return d.Msg
	}
	return d.Pos + ": " + d.Msg
}

// Decide sets the decision of a verdict by its class, its rung and its times, and says why. A verdict without times is
// reverted.
func (r *Rules) Decide(v *Verdict) {
	v.Decision = Revert
	switch {
	case !v.Class.Holds():
		v.Why = fmt.Sprintf("%s: %s", v.Class, placed(v.Reason))
		return
	case v.Device == DeviceCost:
		r.decidePredicted(v)
		return
	}
	v.Threshold = max(r.MinGain, v.Band)
	worse := slices.IndexFunc(v.At, func(a At) bool { return !(a.Ratio.High <= 1+v.Threshold) })
	switch {
	case v.Rung == Screen && v.Ratio.Mean > 1+v.Threshold:
		v.Why = "slower than its baseline at the first look"
	// Three openings tell what gains half of the least that counts from what gains nothing, most of the time. The rest
	// is lost, and not the time that a final verdict on everything would take. What is simpler need not gain.
	case v.Rung == Race && v.Ratio.Mean > 1-r.MinGain/2 && (v.Simpler == "" || v.Ratio.Mean > 1):
		v.Why = "gains less than half of what counts"
	case v.Rung != Final:
		v.Decision, v.Why = Promising, "not shown to be slower"
	case v.disturbed():
		v.Why = fmt.Sprintf("identical builds differ by %.2f %%; want at most %.0f %%: something else was measured too",
			100*max(v.Band, v.Spread), 100*noisiest)
	case v.Simpler != "" && r.alike(v) && !(v.Ratio.High < 1-v.Threshold):
		v.Decision, v.Why = Keep, fmt.Sprintf("the ratio is at most %.4f, and it is simpler: %s", v.Ratio.High,
			v.Simpler)
	case !(v.Ratio.High < 1-v.Threshold): // nor is what is no number
		v.Why = fmt.Sprintf("the ratio may be as much as %.4f; want less than %.4f", v.Ratio.High, 1-v.Threshold)
	case worse >= 0:
		v.Why = fmt.Sprintf("at position %d the ratio may be as much as %.4f; want at most %.4f", v.At[worse].Position,
			v.At[worse].Ratio.High, 1+v.Threshold)
	default:
		v.Decision, v.Why = Keep, fmt.Sprintf("the ratio is at most %.4f", v.Ratio.High)
	}
}

// alike reports whether a candidate is not shown to be slower, and is shown to lose less than what counts, over all
// positions and at each. Where it is simpler too, it wins.
func (r *Rules) alike(v *Verdict) bool {
	return v.Ratio.Low <= 1 && v.Ratio.High <= 1+r.MinGain &&
		!slices.ContainsFunc(v.At, func(a At) bool { return !(a.Ratio.High <= 1+r.MinGain) })
}

// steps reports whether a verdict at the last rung is enough for the incumbent of a basin to be replaced: the gain is
// seen in all of the interval, and no position loses what counts.
func (r *Rules) steps(v *Verdict) bool {
	if r.Step == 0 || v.Rung != Final || !v.Class.Holds() || v.disturbed() || v.Ratio.Mean > 1-r.Step {
		return false
	}
	if v.Device == DeviceCost { // without noise
		return !slices.ContainsFunc(v.At, func(a At) bool { return a.Ratio.Mean > 1+v.Threshold })
	}
	return v.Ratio.High < 1 && !slices.ContainsFunc(v.At, func(a At) bool { return a.Ratio.High > 1+v.Threshold })
}

// decidePredicted decides by predictions, which have no noise and an error of their own: a prediction shortlists, and
// its interval says how little it means.
func (r *Rules) decidePredicted(v *Verdict) {
	v.Threshold = r.MinGain
	worse := slices.IndexFunc(v.At, func(a At) bool { return a.Ratio.Mean > 1+v.Threshold })
	switch {
	case v.Rung == Screen && v.Ratio.Mean > 1+v.Threshold:
		v.Why = "predicted to be slower"
	case v.Rung == Race && v.Ratio.Mean > 1-r.MinGain/2:
		v.Why = "predicted to gain less than half of what counts"
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
