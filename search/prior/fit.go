package prior

import (
	"maps"
	"math"
	"slices"
)

// linear is a model: a base, and a weight for each name.
type linear struct {
	weights map[string]float64
	base    float64
}

// at adds in the order of names, so that the same numbers give the same sum.
func (m linear) at(x map[string]float64) float64 {
	sum := m.base
	for _, name := range slices.Sorted(maps.Keys(x)) {
		sum += m.weights[name] * x[name]
	}
	return sum
}

// least is the scale of a feature that hardly differs anywhere: what was seen of it does not bear a large weight.
const least = 0.05

// A table is rows as a matrix whose columns have an RMS of 1, or less.
type table struct {
	names []string
	scale []float64
	x     [][]float64
	y     []float64
}

func tableOf(rows []Row) *table {
	squares := map[string]float64{}
	for i := range rows {
		for name, v := range rows[i].X {
			squares[name] += v * v
		}
	}
	t := &table{}
	for _, name := range slices.Sorted(maps.Keys(squares)) {
		if rms := math.Sqrt(squares[name] / float64(len(rows))); rms > 1e-12 && !math.IsInf(rms, 0) {
			t.names, t.scale = append(t.names, name), append(t.scale, max(rms, least))
		}
	}
	for i := range rows {
		line := make([]float64, len(t.names))
		for k, name := range t.names {
			line[k] = rows[i].X[name] / t.scale[k]
		}
		t.x, t.y = append(t.x, line), append(t.y, rows[i].Y)
	}
	return t
}

func (t *table) model(w []float64, base float64) linear {
	m := linear{weights: map[string]float64{}, base: base}
	for k, name := range t.names {
		m.weights[name] = w[k] / t.scale[k]
	}
	return m
}

// strengths are those that regularisation is tried with.
var strengths = []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10}

// folds is how often rows are left out to choose a strength.
const folds = 5

// ridge fits the squares of differences, with the strength that does best on rows that are left out. There is no base:
// what is alike takes what is predicted.
func ridge(rows []Row) linear {
	t := tableOf(rows)
	best, lowest := strengths[0], math.Inf(1)
	for _, strength := range strengths {
		sum := 0.0
		for fold := range folds {
			w := t.squares(strength, func(i int) bool { return i%folds != fold })
			for i := range t.x {
				if i%folds == fold {
					d := dot(w, t.x[i]) - t.y[i]
					sum += d * d
				}
			}
		}
		if sum < lowest {
			best, lowest = strength, sum
		}
	}
	return t.model(t.squares(best, func(int) bool { return true }), 0)
}

// squares solves for the weights, by the rows that are in.
func (t *table) squares(strength float64, in func(int) bool) []float64 {
	d := len(t.names)
	a, b, n := square(d), make([]float64, d), 0.0
	for i, line := range t.x {
		if !in(i) {
			continue
		}
		n++
		for k := range d {
			b[k] += line[k] * t.y[i]
			for l := range k + 1 {
				a[k][l] += line[k] * line[l]
			}
		}
	}
	for k := range d {
		a[k][k] += strength * max(n, 1)
	}
	return solve(a, b)
}

// steps is how many of Newton's steps are taken: with the strength there is, they converge in a few.
const steps = 30

// logistic fits probabilities by Newton's steps, with a strength of one row for each weight, and none for the base.
func logistic(rows []Row) linear {
	t := tableOf(rows)
	d := len(t.names)
	w := make([]float64, d+1)
	w[d] = rate(rows).base
	for range steps {
		a, b := square(d+1), make([]float64, d+1)
		for i, line := range t.x {
			p := odds(dot(w[:d], line) + w[d])
			line = append(slices.Clone(line), 1)
			for k := range line {
				b[k] += line[k] * (t.y[i] - p)
				for l := range k + 1 {
					a[k][l] += line[k] * line[l] * p * (1 - p)
				}
			}
		}
		for k := range d {
			b[k] -= w[k]
			a[k][k]++
		}
		a[d][d] += 1e-6
		moved := 0.0
		for k, step := range solve(a, b) {
			step = min(max(step, -2), 2) // far from the end, a whole step may lead away from it
			w[k] += step
			moved = max(moved, math.Abs(step))
		}
		if moved < 1e-9 {
			break
		}
	}
	return t.model(w[:d], w[d])
}

func square(d int) [][]float64 {
	a := make([][]float64, d)
	for k := range a {
		a[k] = make([]float64, d)
	}
	return a
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// solve solves a system whose matrix is symmetric and positive definite, by Cholesky's factors. Only the lower half of
// the matrix is looked at, and it is overwritten.
func solve(a [][]float64, b []float64) []float64 {
	for k := range a {
		for l := range k + 1 {
			sum := a[k][l] - dot(a[k][:l], a[l][:l])
			if k == l {
				a[k][k] = math.Sqrt(max(sum, 1e-300))
			} else {
				a[k][l] = sum / a[l][l]
			}
		}
	}
	x := slices.Clone(b)
	for k := range x {
		x[k] = (x[k] - dot(a[k][:k], x[:k])) / a[k][k]
	}
	for k := range slices.Backward(x) {
		for l := k + 1; l < len(x); l++ {
			x[k] -= a[l][k] * x[l]
		}
		x[k] /= a[k][k]
	}
	return x
}
