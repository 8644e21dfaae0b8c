package refvm

import "math"

var ropeCases = []caseOp{
	{
		name: "rotation of pairs, values pass", pos: 13,
		op: `out[4:12] = ROPE(x[4:12], w[0:3]) head_dim=6 order=1 first=4 limit=10 pos=pos`,
		buffers: "buffer x IO_INPUT F32 [12] HBM rowmajor\nbuffer w WEIGHT F32 [3] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [12] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 {
				if i >= 6 {
					return in[0][i]
				}
				angle := 13 * in[1][(4+i)%6/2]
				if i%2 == 0 {
					return in[0][i]*math.Cos(angle) - in[0][i+1]*math.Sin(angle)
				}
				return in[0][i]*math.Cos(angle) + in[0][i-1]*math.Sin(angle)
			})
		},
	},
	{
		name: "scaled rotation of pairs", pos: 7,
		op: `out[0:4] = ROPE(x[0:4], w[0:2]) head_dim=4 order=1 pos=pos scale=1.25`,
		buffers: "buffer x IO_INPUT F32 [4] HBM rowmajor\nbuffer w WEIGHT F32 [2] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [4] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 {
				angle := 7 * in[1][i/2]
				if i%2 == 0 {
					return 1.25 * (in[0][i]*math.Cos(angle) - in[0][i+1]*math.Sin(angle))
				}
				return 1.25 * (in[0][i]*math.Cos(angle) + in[0][i-1]*math.Sin(angle))
			})
		},
	},
	{
		name: "rotation of the first pairs of heads", pos: 7,
		op: `out[0:12] = ROPE(x[0:12], w[0:2]) head_dim=6 order=1 first=2 limit=12 pos=pos scale=1.25`,
		buffers: "buffer x IO_INPUT F32 [12] HBM rowmajor\nbuffer w WEIGHT F32 [2] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [12] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 {
				pair := (i + 2) % 6 / 2
				if pair == 2 || i+2 >= 12 {
					return in[0][i] // not even scaled
				}
				cos, sin := 1.25*math.Cos(7*in[1][pair]), 1.25*math.Sin(7*in[1][pair])
				if i%2 == 0 {
					return in[0][i]*cos - in[0][i+1]*sin
				}
				return in[0][i]*cos + in[0][i-1]*sin
			})
		},
	},
	{
		name: "rotation of halves", op: `out[0:2,0:3,0:4] = ROPE(x[0:2,0:3,0:4], ids[0:2]) head_dim=4 order=0 ` +
			`theta=100.0 scale=0.5`, ints: map[string][]float32{"ids": {7, 3}},
		buffers: "buffer x IO_INPUT F32 [2,3,4] HBM rowmajor\nbuffer ids IO_INPUT I32 [2] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,3,4] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 {
				j := i % 4
				angle := in[1][i/12] * math.Pow(100, -float64(j%2)/2)
				if j < 2 {
					return 0.5 * (in[0][i]*math.Cos(angle) - in[0][i+2]*math.Sin(angle))
				}
				return 0.5 * (in[0][i]*math.Cos(angle) + in[0][i-2]*math.Sin(angle))
			})
		},
	},
}
