package refvm

import "math"

// What ops are compared with: float64, as plainly as possible.

// tanhGELU is the tanh form of GELU.
func tanhGELU(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*math.Pow(x, 3))))
}

// each returns f of every index of x.
func each(x []float64, f func(i int) float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = f(i)
	}
	return out
}

// rowsOf applies f to rows of n elements.
func rowsOf(x []float64, n int, f func(row []float64) []float64) (out []float64) {
	for ; len(x) > 0; x = x[n:] {
		out = append(out, f(x[:n])...)
	}
	return out
}

// matmul is x · wᵀ, both with rows of k.
func matmul(x, w []float64, k int) []float64 {
	return rowsOf(x, k, func(x []float64) (out []float64) {
		return rowsOf(w, k, func(w []float64) []float64 {
			sum := 0.0
			for i := range x {
				sum += x[i] * w[i]
			}
			return []float64{sum}
		})
	})
}

// widened is (q - zero) * scale for rows of k in groups.
func widened(q, scales, zeros []float64, k, group int) []float64 {
	count := (k + group - 1) / group
	return each(q, func(i int) float64 {
		g := i/k*count + i%k/group
		if zeros == nil {
			return q[i] * scales[g]
		}
		return (q[i] - zeros[g]) * scales[g]
	})
}

func naiveLayerNorm(in [][]float64) []float64 {
	return rowsOf(in[0], 5, func(x []float64) []float64 {
		mean, variance := 0.0, 0.0
		for _, f := range x {
			mean += f / 5
		}
		for _, f := range x {
			variance += (f - mean) * (f - mean) / 5
		}
		return each(x, func(i int) float64 {
			y := (x[i] - mean) / math.Sqrt(variance+0.25)
			if len(in) > 1 {
				y *= in[1][i]
			}
			if len(in) == 3 {
				y += in[2][i]
			}
			return y
		})
	})
}

func largest(x []float64) int {
	at := 0
	for i := range x {
		if x[i] > x[at] {
			at = i
		}
	}
	return at
}
