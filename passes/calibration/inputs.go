package calibration

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"amkc/ir/format"
)

// damping is what is added to every element of the diagonal, as a share of their mean. It stands for what other texts
// are made of: a few thousand vectors say too much of the text that they are from (docs/quantisation.md has numbers).
const damping = 0.1

// errIndefinite is of sums that no vectors of numbers have.
var errIndefinite = errors.New("the sums over its inputs are not finite, or not of squares")

// Inputs returns the correlations of the vectors, for rounding, or nil if all were zero. It takes three times the
// memory of the sum while it runs, and as much as the sum for the result.
//
// Columns with large inputs come first, while other columns remain to compensate their errors.
func (g *Gram) Inputs() (*format.Inputs, error) {
	in := &format.Inputs{Square: make([]float32, g.N), Order: make([]int, g.N),
		Carry: make([]float32, g.N*(g.N-1)/2)}
	mean := 0.0
	for i := range in.Order {
		in.Order[i] = i
		mean += float64(g.At(i, i)) / float64(g.N)
	}
	if mean == 0 {
		return nil, nil
	}
	for i := range in.Square {
		in.Square[i] = float32(float64(g.At(i, i))/mean + damping)
	}
	slices.SortStableFunc(in.Order, func(i, j int) int { return cmp.Compare(g.At(j, j), g.At(i, i)) })
	a := &triangle{g.N, make([]float64, len(g.sum))}
	share(g.N, func(i int) {
		row := a.row(i)
		for j := range row {
			row[j] = float64(g.At(in.Order[i], in.Order[j]))
		}
		row[i] += damping * mean
	})
	if !a.factor() {
		return nil, errIndefinite
	}
	share(g.N, func(k int) {
		for j, f := range a.row(k)[:k] {
			in.Carry[k*(k-1)/2+j] = float32(f)
		}
	})
	return in, nil
}

// A triangle is the lower one of a square matrix, row by row.
type triangle struct {
	n int
	v []float64
}

func (a *triangle) row(i int) []float64 { return a.v[i*(i+1)/2:][:i+1] }

// panel is how many rows are eliminated together: they are read once for each of the rows before them.
const panel = 32

// factor replaces a symmetric matrix by L and D, of which it is Lᵀ·D·L: L is 1 on the diagonal, and D is stored there.
// It reports false if there is no such D above 0. The last rows are eliminated first.
//
// docs/dependencies.md says why no library is used.
func (a *triangle) factor() bool {
	for end := a.n; end > 0; {
		first := max(0, end-panel)
		for k := end - 1; k >= first; k-- {
			row := a.row(k)
			d := row[k]
			if !(d > 0) || d > math.MaxFloat64 {
				return false
			}
			for j := range row[:k] {
				row[j] /= d
			}
			for i := first; i < k; i++ {
				subtract(a.row(i), row, row[i]*d)
			}
		}
		share(first, func(i int) { a.eliminate(a.row(i), first, end) })
		end = first
	}
	return true
}

// eliminate takes the rows of a panel off a row before it, four at a time.
func (a *triangle) eliminate(row []float64, first, end int) {
	i := len(row) - 1
	for ; end-first >= 4; end -= 4 {
		var from [4][]float64
		var times [4]float64
		for t := range from {
			k := end - 1 - t
			from[t], times[t] = a.row(k)[:len(row)], a.row(k)[i]*a.row(k)[k]
		}
		r0, r1, r2, r3 := from[0], from[1], from[2], from[3]
		for j := range row {
			row[j] -= (times[0]*r0[j] + times[1]*r1[j]) + (times[2]*r2[j] + times[3]*r3[j])
		}
	}
	for k := end - 1; k >= first; k-- {
		subtract(row, a.row(k), a.row(k)[i]*a.row(k)[k])
	}
}

// subtract takes a multiple of a longer row off a row.
func subtract(row, from []float64, times float64) {
	from = from[:len(row)]
	for j := range row {
		row[j] -= times * from[j]
	}
}
