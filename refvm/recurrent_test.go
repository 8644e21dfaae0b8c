package refvm

import (
	"fmt"
	"math"
	"slices"
)

const convBuffers = "buffer x IO_INPUT F32 [3,4] HBM rowmajor\nbuffer past KV_CACHE F32 [2,9,1,4] HBM rowmajor\n" +
	"buffer w WEIGHT F32 [12] HBM rowmajor\nbuffer b WEIGHT F32 [4] HBM rowmajor\nbuffer out ACTIVATION F32 [3,4] " +
	"HBM rowmajor"

const keptBuffers = "buffer x IO_INPUT F32 [3,4] HBM rowmajor\nbuffer past STATE F32 [5,4] HBM rowmajor\nbuffer w " +
	"WEIGHT F32 [12] HBM rowmajor\nbuffer out ACTIVATION F32 [2,4] HBM rowmajor"

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

const stateBuffers = "buffer x IO_INPUT F32 [2,7] HBM rowmajor\nbuffer d IO_INPUT F32 [2] HBM rowmajor\nbuffer e " +
	"IO_INPUT F32 [2] HBM rowmajor\nbuffer s STATE F32 [2,3] HBM rowmajor\nbuffer left STATE F32 [4,7] HBM rowmajor\n" +
	"buffer out ACTIVATION F32 [2,3] HBM rowmajor"

// stepped is what RECURRENCE makes of two rows at a position, of a state of two rows of three elements: the results,
// the state that is kept, and the pending rows.
func stepped(in [][]float64, pos, delta int) []float64 {
	q, k, v, decay, beta, s := in[0], in[1], in[2], in[3], in[4], slices.Clone(in[5])
	row := func(by float64, k, u []float64) {
		for i := range s {
			s[i] = s[i]*by + k[i/3]*u[i%3]
		}
	}
	if pos == 0 {
		clear(s)
	}
	for r := range 4 {
		if left := in[6][7*r:]; pos > 0 && left[0] > 0 && int(left[0]) <= pos {
			row(left[1], left[2:4], left[4:7])
		}
	}
	kept, pending, out := slices.Clone(s), make([]float64, 28), []float64{}
	for b := range 2 {
		k, u := k[2*b:2*b+2], make([]float64, 3)
		for j := range u {
			old := decay[b] * (s[j]*k[0] + s[3+j]*k[1])
			u[j] = beta[b] * (v[3*b+j] - float64(delta)*old)
		}
		row(decay[b], k, u)
		for j := range 3 {
			out = append(out, s[j]*q[2*b]+s[3+j]*q[2*b+1])
		}
		copy(pending[7*b:], slices.Concat([]float64{float64(pos + b + 1), decay[b]}, k, u))
	}
	return slices.Concat(out, kept, pending)
}

const stepsState = "out[0:2,0:3], s[0:2,0:3], left[0:4,0:7] = RECURRENCE(x[0:2,0:2], x[0:2,2:4], x[0:2,4:7], d[0:2], " +
	"e[0:2], s[0:2,0:3], left[0:4,0:7]) pos=%s delta=%d"

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
	{
		name: "l2 norm of heads", op: `out[0:6] = L2NORM(x[0:6]) eps=0.5 head_dim=3 scale=0.25`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 {
				h := in[0][i/3*3:]
				return 0.25 * in[0][i] / math.Sqrt(h[0]*h[0]+h[1]*h[1]+h[2]*h[2]+0.5)
			})
		},
	},
	{
		name: "decay", op: `out[0:6] = DECAY(x[0:6], y[0:3], y[3:6])`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 {
				return math.Exp(-math.Exp(in[1][i%3]) * math.Log1p(math.Exp(in[0][i]+in[2][i%3])))
			})
		},
	},
	{
		name: "decay of what is far from 0", op: `out[0:2] = DECAY(x[0:2], y[0:2], y[2:4])`, buffers: vectors,
		ints: map[string][]float32{"x": {90, -90, 0, 0, 0, 0}, "y": {-5, 1, 0, 0, 0, 0}},
		want: func(in [][]float64) []float64 { return []float64{math.Exp(-90 * math.Exp(-5)), 1} },
	},
	{
		name: "convolution from the beginning, whose rows a state keeps", buffers: keptBuffers,
		op: `out[0:2,0:4], past[0:5,0:4] = STATE_CONV(x[0:2,0:4], past[0:5,0:4], w[0:12]) pos=pos taps=3`,
		want: func(in [][]float64) []float64 {
			return slices.Concat(convolved(nil, in[0][:8], in[2], nil, 4, 3), in[0][:8], in[1][8:])
		},
	},
	{
		name: "convolution of some columns after rows that a state keeps in turn", pos: 9, buffers: keptBuffers,
		op: `out[0:2,0:2], past[0:5,2:4] = STATE_CONV(x[0:2,2:4], past[0:5,2:4], w[6:12]) pos=pos taps=3`,
		want: func(in [][]float64) []float64 { // positions 7, 8, 9 and 10 are rows 2, 3, 4 and 0
			return slices.Concat(convolved(in[1][4:8], in[0], in[2], nil, 2, 3), in[0][2:4], in[1][2:8], in[0][:2])
		},
	},
	{
		name: "recurrence from the beginning", op: fmt.Sprintf(stepsState, "pos", 0), buffers: stateBuffers,
		want: func(in [][]float64) []float64 { return stepped(in, 0, 0) },
	},
	{
		name: "delta rule after pending rows, of which one is a draft", pos: 5,
		op: fmt.Sprintf(stepsState, "pos", 1), buffers: stateBuffers,
		ints: map[string][]float32{"left": {4, .5, 1, -1, 2, .25, 1, 5, .75, -.5, 1, 1, 2, -1, 6, .25, 3, 3, 3, 3, 3,
			0, 0, 0, 0, 0, 0, 0}},
		want: func(in [][]float64) []float64 { return stepped(in, 5, 1) },
	},
}
