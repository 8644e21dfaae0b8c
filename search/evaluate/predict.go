package evaluate

import (
	"math"
	"sync"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/search"
)

// PredictionError is the RMS error of predicted ratios of knobs, as a fraction, from which the interval of a prediction
// is computed. A test of internal/costcheck compares it with the published rows.
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
			Predicted: &search.Predicted{Candidate: is.Latency, Baseline: was.Latency}}
		log := math.Log(at.Candidate.Median / at.Baseline.Median)
		logs += log / float64(len(e.Positions))
		at.Ratio = predicted(log)
		t.At = append(t.At, at)
		t.Machine = "cost model, " + is.Label
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
// The limit is the measured bandwidth of memory, and else that of the data sheet.
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

// NewDescriber returns a function that lowers and proves a candidate, and predicts its time relative to a baseline at
// positions. The error is the reason why one of them is refused. For a target that the cost model does not know, it
// returns 0. The baseline is kept from one call to the next.
func NewDescriber(o compiler.Options, positions []int) search.Describer {
	o.ConfigOnly = true
	var mu sync.Mutex
	known, last := "", 0.0
	return func(candidate, baseline knobs.Settings) (float64, error) {
		mu.Lock()
		if id := search.IDOf(baseline); id != known {
			var err error
			if last, err = logTime(o, baseline, positions); err != nil {
				mu.Unlock()
				return 0, err
			}
			known = id
		}
		was := last
		mu.Unlock()
		is, err := logTime(o, candidate, positions)
		return is - was, err
	}
}

// logTime is the mean logarithm of the predicted times of a configuration that is proved; 0 where nothing is predicted
// for the target.
func logTime(o compiler.Options, s knobs.Settings, positions []int) (log float64, err error) {
	if o.Config, err = s.Config(); err != nil {
		return 0, err
	}
	l, err := compiler.RunPasses(o)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	if proof := compiler.Prove(l.Program); !proof.OK {
		return 0, proof.Diags.Err()
	}
	m, err := cost.New(l.Program)
	if err != nil {
		return 0, nil
	}
	for _, pos := range positions {
		p, err := m.At(pos)
		if err != nil {
			return 0, err
		}
		log += math.Log(p.Latency) / float64(len(positions))
	}
	return log, nil
}
