package evaluate

import (
	"math"

	"amkc/cost"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/search"
)

// PredictionError is the RMS error of predicted ratios of knobs, as a part: what the interval of a prediction is made
// of. Held to the published rows by a test of internal/costcheck.
const PredictionError = 0.048

// predict has the cost model say what a step takes, of candidate and baseline.
func (e *evaluation) predict() error {
	candidate, err := cost.New(e.candidate.Program)
	if err != nil {
		return err // the target is one that nothing can be predicted for
	}
	baseline, err := cost.New(e.baseline.Program)
	if err != nil {
		return err
	}
	t := &search.Timing{}
	logs := 0.0
	for _, pos := range e.Positions {
		is, err := candidate.At(pos)
		if err != nil {
			return rejected(err)
		}
		was, err := baseline.At(pos)
		if err != nil {
			return err
		}
		if err := floor(is, e.Options.Target); err != nil {
			return err
		}
		at := search.At{Position: pos, Candidate: always(is.Latency), Baseline: always(was.Latency),
			Ceiling: is.Ceiling, ReadGBs: e.Options.Target.HBMGBs, Bytes: float64(is.BytesPerToken),
			Predicted: &search.Predicted{Candidate: is.Latency, Baseline: was.Latency,
				Traits: Traits(e.candidate.Program, e.baseline.Program, is, was)}}
		if e.Stage != "" {
			if at, err = predictAlone(is, was, e.Stage); err != nil {
				return rejected(err)
			}
			at.ReadGBs = e.Options.Target.HBMGBs
		}
		log := math.Log(at.Candidate.Median / at.Baseline.Median)
		logs += log / float64(len(e.Positions))
		at.Ratio = predicted(log)
		t.At = append(t.At, at)
		t.Machine = "cost model, " + is.Label
		if t.Shares == nil && e.Stage == "" {
			t.Shares = sharesOfPrediction(was)
		}
	}
	t.Ratio = predicted(logs)
	e.v.Timing = t
	return nil
}

// rounding is by how much two predictions of one time may differ: the ceiling is put together in another way than a
// step, and a step that does nothing but stream may come out below it by as much. Measured ceilings are up to 0.2 %
// below what memory takes at the rate that fits them best.
const rounding = 0.005

// floor rejects a prediction that no machine could fulfil: it says something of the cost model, not of the candidate.
// Where memory was measured, it is held to that, and else to the data sheet.
func floor(p *cost.Prediction, t *ir.Target) error {
	least := float64(p.BytesPerToken) / cost.ReadGBs(t) / 1e3
	switch {
	case p.Latency < p.Ceiling*(1-rounding):
		return &fault{search.Rejected, diag.Errorf(codeFloor, "position", "%d: the predicted %.1f µs are below the "+
			"ceiling's %.1f µs", p.Position, p.Latency, p.Ceiling)}
	case p.Latency < least*(1-rounding) && p.BytesPerToken > int64(t.L2Bytes):
		return &fault{search.Rejected, diag.Errorf(codeFloor, "position", "%d: the predicted %.1f µs are below the "+
			"%.1f µs that memory takes for the bytes alone", p.Position, p.Latency, least)}
	}
	return nil
}

func always(us float64) search.Times { return search.Times{Median: us, P10: us, P90: us} }

// predicted is a predicted ratio with the interval that predictions have.
func predicted(log float64) search.Interval {
	half := 1.96 * math.Log1p(PredictionError)
	return search.Interval{Mean: math.Exp(log), Low: math.Exp(log - half), High: math.Exp(log + half)}
}
