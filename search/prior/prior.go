// Package prior learns from trials how far the cost model is off, and which settings are refused. What it has learnt is
// used only where it has shown to be better than not using it, on models that it was not shown.
//
// It knows numbers with names, and nothing of schedules. It must not import any other package of amkc.
package prior

import (
	"maps"
	"math"
	"slices"
)

// A Row is a trial, or a position of one.
type Row struct {
	Model string             // rows of one model are left out together
	X     map[string]float64 // what differs between candidate and baseline; a name that is missing is 0
	Y     float64            // log of the measured ratio over the predicted one; of a refusal 1, and 0 of what was none
}

// A Prior is what was learnt. Its zero value knows nothing.
type Prior struct {
	Times    Learnt `json:"times"`
	Refusals Learnt `json:"refusals"`
}

// A Learnt is a linear model with what it has shown.
type Learnt struct {
	Rows   int `json:"rows"`
	Models int `json:"models"`
	// Error is that on models that were left out: of times the RMS of the logarithm, of refusals the mean of the
	// logarithmic loss. Without is the same of the cost model alone, and of the mean rate of refusals.
	Error   float64 `json:"error"`
	Without float64 `json:"without"`
	Used    bool    `json:"used"` // Error is below Without, by 5 % and more
	// Weights are those of the features that differ anywhere; none where the model is not used.
	Weights map[string]float64 `json:"weights,omitempty"`
	Base    float64            `json:"base"` // of refusals: the logarithm of their odds where nothing differs
}

// margin is what an error has to be below, as a part of that without the model: noise is at times better by a little.
const margin = 0.95

// fewest is how many rows there have to be for anything to be learnt.
const fewest = 8

// FitTimes learns what has to be added to the logarithm of a predicted ratio. Rows are of verdicts with measured times.
// Nothing is added where candidate and baseline are alike.
func FitTimes(rows []Row) Learnt {
	return learn(rows, ridge, func(m linear, r *Row) float64 { d := m.at(r.X) - r.Y; return d * d },
		func([]Row) linear { return linear{} }, math.Sqrt)
}

// FitRefusals learns which settings are refused.
func FitRefusals(rows []Row) Learnt {
	return learn(rows, logistic, func(m linear, r *Row) float64 {
		p := min(max(odds(m.at(r.X)), 1e-6), 1-1e-6)
		return -r.Y*math.Log(p) - (1-r.Y)*math.Log(1-p)
	}, rate, func(mean float64) float64 { return mean })
}

// At is what the model says of differences: of times a logarithm, of refusals a probability.
func (l *Learnt) At(x map[string]float64) float64 { return linear{l.Weights, l.Base}.at(x) }

// Refused is the probability of a refusal.
func (l *Learnt) Refused(x map[string]float64) float64 { return odds(l.At(x)) }

// learn fits a model, and says by leaving out one model after another whether that is better than a plain one. root
// makes an error of a mean loss.
func learn(rows []Row, fit func([]Row) linear, loss func(linear, *Row) float64, plain func([]Row) linear,
	root func(float64) float64) Learnt {
	models := map[string]bool{}
	for i := range rows {
		models[rows[i].Model] = true
	}
	l := Learnt{Rows: len(rows), Models: len(models)}
	if len(models) < 2 || len(rows) < fewest {
		return l
	}
	for _, out := range slices.Sorted(maps.Keys(models)) {
		var in []Row
		for _, r := range rows {
			if r.Model != out {
				in = append(in, r)
			}
		}
		m, p := fit(in), plain(in)
		for i := range rows {
			if rows[i].Model == out {
				l.Error += loss(m, &rows[i]) / float64(len(rows))
				l.Without += loss(p, &rows[i]) / float64(len(rows))
			}
		}
	}
	l.Error, l.Without = root(l.Error), root(l.Without)
	if l.Used = l.Error < margin*l.Without; l.Used {
		m := fit(rows)
		l.Weights, l.Base = m.weights, m.base
	}
	return l
}

// rate is a model that knows the mean of the rows alone.
func rate(rows []Row) linear {
	sum := 0.5
	for i := range rows {
		sum += rows[i].Y
	}
	p := sum / (float64(len(rows)) + 1)
	return linear{base: math.Log(p / (1 - p))}
}

func odds(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
