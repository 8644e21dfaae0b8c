package search

import (
	"fmt"
	"slices"

	"amkc/ir/diag"
)

// Rules are the thresholds for the decisions of a campaign.
type Rules struct {
	MinGain float64 `json:"min_gain"` // a smaller gain does not count: 0.01
	// Step is the smallest gain for which the incumbent is replaced: 0.005. It is below MinGain, since several such
	// steps can add up to a significant gain, which is confirmed at the end.
	Step    float64 `json:"step"`
	Width   int     `json:"width"`   // proposals of a round, which are screened
	Finals  int     `json:"finals"`  // of them, at most n are judged in full
	Crashes int     `json:"crashes"` // trials with a value of a knob that fail alike, after which it is retired
}

// DefaultRules are the rules of a campaign by default.
func DefaultRules() Rules {
	return Rules{MinGain: 0.01, Step: 0.005, Width: 9, Finals: 3, Crashes: 3}
}

// noisiest is how far a build and its identical twin may differ in an opening, if anything is to be kept by it: twice
// what their places in memory account for. A band that is wider would let a candidate be as much slower at a position.
const noisiest = 0.04

// disturbed reports whether the twins of a measurement differ by too much.
func (v *Verdict) disturbed() bool {
	return v.Device == DeviceCUDA && v.Timing != nil && !(max(v.Band, v.Spread) <= noisiest)
}

// Undecided reports whether more openings may decide: if times appear to show a sufficient gain, but not beyond the
// noise, and no position shows a significant loss.
func (r *Rules) Undecided(v *Verdict) bool {
	of := *v
	timing := *v.Timing
	of.Timing = &timing
	r.Decide(&of)
	loses := slices.ContainsFunc(of.At, func(a At) bool { return a.Ratio.Low > 1+of.Threshold })
	return of.Decision != Keep && of.Ratio.Mean < 1-r.MinGain && !of.disturbed() && !loses
}

// placed is a reason with what it is about: a knob, a position, a file.
func placed(d *diag.Diagnostic) string {
	if d.Pos == "" {
		return d.Msg
	}
	return d.Pos + ": " + d.Msg
}

// Decide sets the decision of a verdict by its class, its rung and its times, and the reason. A verdict without times
// is reverted.
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
	case v.Rung == Screen && v.Ratio.Mean < 1-r.Step:
		v.Decision, v.Why = Promising, "seems to be faster at the first look"
	case v.Rung == Screen:
		v.Why = "does not seem to be faster at the first look"
	case v.disturbed():
		v.Why = fmt.Sprintf("identical builds differ by %.2f %%; want at most %.0f %%: something else was measured too",
			100*max(v.Band, v.Spread), 100*noisiest)
	case !(v.Ratio.High < 1-v.Threshold): // nor is a NaN
		v.Why = fmt.Sprintf("the ratio may be as much as %.4f; want less than %.4f", v.Ratio.High, 1-v.Threshold)
	case worse >= 0:
		v.Why = fmt.Sprintf("at position %d the ratio may be as much as %.4f; want at most %.4f", v.At[worse].Position,
			v.At[worse].Ratio.High, 1+v.Threshold)
	default:
		v.Decision, v.Why = Keep, fmt.Sprintf("the ratio is at most %.4f", v.Ratio.High)
	}
}

// moves reports whether a final verdict replaces the incumbent of a campaign: it is in favour of its candidate, or
// shows a step, seen in all of the interval, and no position may lose what counts.
func (r *Rules) moves(v *Verdict) bool {
	switch {
	case v.Better():
		return true
	case !v.Class.Holds() || v.disturbed() || !(v.Ratio.Mean <= 1-r.Step):
		return false
	case v.Device == DeviceCost: // without noise
		return !slices.ContainsFunc(v.At, func(a At) bool { return a.Ratio.Mean > 1+v.Threshold })
	}
	return v.Ratio.High < 1 && !slices.ContainsFunc(v.At, func(a At) bool { return !(a.Ratio.High <= 1+v.Threshold) })
}

// decidePredicted decides by predictions, which have no noise and an error of their own: a prediction shortlists, and
// its interval says how little it means.
func (r *Rules) decidePredicted(v *Verdict) {
	v.Threshold = r.MinGain
	worse := slices.IndexFunc(v.At, func(a At) bool { return a.Ratio.Mean > 1+v.Threshold })
	switch {
	case v.Rung == Screen && v.Ratio.Mean < 1-r.Step:
		v.Decision, v.Why = Promising, "predicted to be faster"
	case v.Rung == Screen:
		v.Why = "not predicted to be faster"
	case v.Ratio.Mean >= 1-v.Threshold:
		v.Why = fmt.Sprintf("the predicted ratio is %.4f; want less than %.4f", v.Ratio.Mean, 1-v.Threshold)
	case worse >= 0:
		v.Why = fmt.Sprintf("the predicted ratio at position %d is %.4f; want at most %.4f", v.At[worse].Position,
			v.At[worse].Ratio.Mean, 1+v.Threshold)
	default:
		v.Decision, v.Why = Shortlist, fmt.Sprintf("the predicted ratio is %.4f", v.Ratio.Mean)
	}
}
