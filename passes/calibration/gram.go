// Package calibration adds up the products of the vectors that the matrices of a model multiply over a text, and
// computes the inputs of rounding from the sums.
//
// It knows only vectors and sums, and neither models nor the storage of matrices.
package calibration

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Gram is the sum of x·xᵀ over vectors x of N elements, the inputs of a matrix of N columns over a text. It takes
// 2·N² bytes, for any number of vectors.
type Gram struct {
	N       int
	Vectors int
	sum     []float32 // the rows of the lower triangle, one after another
}

// NewGram returns a sum over no vectors of n elements.
func NewGram(n int) *Gram { return &Gram{N: n, sum: make([]float32, n*(n+1)/2)} }

// Bytes is how much memory a Gram of n elements takes.
func Bytes(n int) uint64 { return 4 * uint64(n) * uint64(n+1) / 2 }

// row is row i of the lower triangle, which ends with the diagonal.
func (g *Gram) row(i int) []float32 { return g.sum[i*(i+1)/2:][:i+1] }

// At is an element of the symmetric sum.
func (g *Gram) At(i, j int) float32 { return g.row(max(i, j))[min(i, j)] }

// Add adds to each sum the vectors at its index in the other list, one after another. The processors share the rows of
// all sums, and one processor adds up a row, in the order of the vectors, so the bits do not depend on the number of
// processors.
func Add(grams []*Gram, vectors [][]float32) {
	type rows struct{ gram, first, end int }
	const most = 1 << 16 // elements of a job, about
	var jobs []rows
	for k, g := range grams {
		for first := 0; first < g.N; {
			end := first + 1
			for end < g.N && (end+1-first)*end <= most {
				end++
			}
			jobs = append(jobs, rows{k, first, end})
			first = end
		}
		g.Vectors += len(vectors[k]) / g.N
	}
	share(len(jobs), func(j int) {
		g, x := grams[jobs[j].gram], vectors[jobs[j].gram]
		for i := jobs[j].first; i < jobs[j].end; i++ {
			add(g.row(i), x, g.N, i)
		}
	})
}

// add adds x_i · x to row i, for four vectors at a time and then for each that is left.
func add(row, x []float32, n, i int) {
	for ; len(x) >= 4*n; x = x[4*n:] {
		x0, x1, x2, x3 := x[:len(row)], x[n:][:len(row)], x[2*n:][:len(row)], x[3*n:][:len(row)]
		a0, a1, a2, a3 := x0[i], x1[i], x2[i], x3[i]
		for j := range row {
			row[j] += (a0*x0[j] + a1*x1[j]) + (a2*x2[j] + a3*x3[j])
		}
	}
	for ; len(x) >= n; x = x[n:] {
		a := x[i]
		for j, f := range x[:len(row)] {
			row[j] += a * f
		}
	}
}

// share calls f for 0 to n-1, on all processors.
func share(n int, f func(i int)) {
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
