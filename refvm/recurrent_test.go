package refvm

import "math"

const convBuffers = "buffer x IO_INPUT F32 [3,4] HBM rowmajor\nbuffer past KV_CACHE F32 [2,9,1,4] HBM rowmajor\n" +
	"buffer w WEIGHT F32 [12] HBM rowmajor\nbuffer b WEIGHT F32 [4] HBM rowmajor\nbuffer out ACTIVATION F32 [3,4] " +
	"HBM rowmajor"

// convolved is a convolution of columns of `columns`, of which the last rows are wanted.
func convolved(past, x, w, bias []float64, columns, taps int) []float64 {
	all := append(append([]float64{}, past...), x...)
	var out []float64
	for row := len(past) / columns; row < len(all)/columns; row++ {
		for i := range columns {
			sum := 0.0
			for back := 0; back < taps && back <= row; back++ {
				sum += w[i*taps+taps-1-back] * all[(row-back)*columns+i]
			}
			if bias != nil {
				sum += bias[i]
			}
			out = append(out, sum)
		}
	}
	return out
}

// recurrentCases are cases of [TestOps].
var recurrentCases = []caseOp{
	{
		name:    "convolution of the first rows",
		op:      `out[0:3,0:4] = SHORT_CONV(x[0:3,0:4], past[1,0:pos,0,0:4], w[0:12]) taps=3`,
		buffers: convBuffers, want: func(in [][]float64) []float64 {
			return convolved(nil, in[0], in[2], nil, 4, 3)
		},
	},
	{
		name: "convolution after some rows, with a bias", pos: 7, buffers: convBuffers,
		op: `out[0:3,0:4] = SHORT_CONV(x[0:3,0:4], past[1,max(0,pos-2):pos,0,0:4], w[0:12], b[0:4]) taps=3`,
		want: func(in [][]float64) []float64 {
			return convolved(in[1], in[0], in[2], in[3], 4, 3)
		},
	},
	{
		name: "convolution of some columns after fewer rows than taps", pos: 1, buffers: convBuffers,
		op: `out[0:1,0:2] = SHORT_CONV(x[0:1,2:4], past[0,max(0,pos-2):pos,0,2:4], w[6:12]) taps=3`,
		want: func(in [][]float64) []float64 {
			return convolved(in[1], in[0], in[2], nil, 2, 3)
		},
	},
	{
		name: "silu", op: `out[0:4] = SILU(x[2:6])`, buffers: vectors, want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return in[0][i] / (1 + math.Exp(-in[0][i])) })
		},
	},
}
