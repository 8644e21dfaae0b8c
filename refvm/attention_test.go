package refvm

import "math"

const nativeCache = "buffer q IO_INPUT F32 [24] HBM rowmajor\nbuffer kv KV_CACHE F32 [3,40,2,4] HBM " +
	"rowmajor\nbuffer out ACTIVATION F32 [24] HBM rowmajor\nbuffer part ACTIVATION F32 [6,2,6] HBM rowmajor"

var attentionCases = []caseOp{
	{
		name: "attention of one key head with its own row", pos: 11, buffers: nativeCache,
		op: `out[8:16] = ATTENTION_TILE(q[0:8], kv[1,0:pos,0,0:4], kv[1,0:pos,1,0:4], q[8:12], q[12:16]) head_dim=4 ` +
			`n_heads=2 n_kv_heads=1 scale=0.7 row=pos`,
		want: func(in [][]float64) []float64 {
			return normalised(attend(in[0], append(in[1], in[3]...), append(in[2], in[4]...), 2, 1, 4, 0.7), 4)
		},
	},
	{
		name: "attention at position 0", pos: 0, buffers: nativeCache,
		op: `out[8:16] = ATTENTION_TILE(q[0:8], kv[1,0:pos,0,0:4], kv[1,0:pos,1,0:4], q[8:12], q[12:16]) ` +
			`head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 row=pos`,
		want: func(in [][]float64) []float64 { return append(append([]float64{}, in[4]...), in[4]...) },
	},
	{
		name: "attention of all key heads of a native cache", pos: 7, buffers: nativeCache,
		op: `out[0:24] = ATTENTION_TILE(q[0:24], kv[0:3,0:pos,0,0:4], kv[0:3,0:pos,1,0:4]) head_dim=4 n_heads=6 ` +
			`n_kv_heads=3 scale=0.7`,
		want: func(in [][]float64) (out []float64) {
			for h := range 3 { // the view lists head by head
				out = append(out, normalised(attend(in[0][h*8:][:8], in[1][h*28:][:28], in[2][h*28:][:28], 2, 1, 4,
					0.7), 4)...)
			}
			return out
		},
	},
	{
		name: "partial with its own row", pos: 37, buffers: nativeCache, // row 37 is in block 9, and 9 % 3 = 0
		op: `part[3,0:2,0:6] = ATTENTION_TILE(q[0:8], kv[1,0:pos block 4 part 0 of 3,0,0:4], kv[1,0:pos block 4 part ` +
			`0 of 3,1,0:4], q[8:12], q[12:16]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 flags=2 row=pos block=4 ` +
			`part=0 parts=3`,
		want: func(in [][]float64) []float64 {
			return attend(in[0], append(in[1], in[3]...), append(in[2], in[4]...), 2, 1, 4, 0.7)
		},
	},
	{
		name: "attention with sinks", pos: 11, buffers: nativeCache,
		op: `out[8:16] = ATTENTION_TILE(q[0:8], kv[1,0:pos,0,0:4], kv[1,0:pos,1,0:4], q[8:12], q[12:16], q[20:22]) ` +
			`head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 row=pos`,
		want: func(in [][]float64) []float64 {
			return normalised(sunk(attend(in[0], append(in[1], in[3]...), append(in[2], in[4]...), 2, 1, 4, 0.7), 4,
				in[5]), 4)
		},
	},
	{
		name: "partial with sinks", pos: 37, buffers: nativeCache,
		op: `part[3,0:2,0:6] = ATTENTION_TILE(q[0:8], kv[1,0:pos block 4 part 0 of 3,0,0:4], kv[1,0:pos block 4 part ` +
			`0 of 3,1,0:4], q[8:12], q[12:16], q[20:22]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 flags=2 row=pos ` +
			`block=4 part=0 parts=3`,
		want: func(in [][]float64) []float64 {
			return sunk(attend(in[0], append(in[1], in[3]...), append(in[2], in[4]...), 2, 1, 4, 0.7), 4, in[5])
		},
	},
	{
		name: "partial whose sinks another part counts", pos: 37, buffers: nativeCache,
		op: `part[3,0:2,0:6] = ATTENTION_TILE(q[0:8], kv[1,0:pos block 4 part 2 of 3,0,0:4], kv[1,0:pos block 4 part ` +
			`2 of 3,1,0:4], q[8:12], q[12:16], q[20:22]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 flags=2 row=pos ` +
			`block=4 part=2 parts=3`,
		want: func(in [][]float64) []float64 { return attend(in[0], in[1], in[2], 2, 1, 4, 0.7) },
	},
	{
		name: "partial of a sink alone", pos: 0, buffers: nativeCache,
		op: `part[3,0:2,0:6] = ATTENTION_TILE(q[0:8], kv[1,0:pos block 4 part 0 of 3,0,0:4], kv[1,0:pos block 4 part ` +
			`0 of 3,1,0:4], q[8:12], q[12:16], q[20:22]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 flags=2 ` +
			`row=pos+4 block=4 part=0 parts=3`,
		want: func(in [][]float64) []float64 {
			return []float64{0, 0, 0, 0, in[5][0], 1, 0, 0, 0, 0, in[5][1], 1}
		},
	},
	{
		name: "partial without its own row", pos: 37, buffers: nativeCache,
		op: `part[3,0:2,0:6] = ATTENTION_TILE(q[0:8], kv[1,0:pos block 4 part 2 of 3,0,0:4], kv[1,0:pos block 4 ` +
			`part 2 of 3,1,0:4], q[8:12], q[12:16]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 flags=2 row=pos ` +
			`block=4 part=2 parts=3`,
		want: func(in [][]float64) []float64 { return attend(in[0], in[1], in[2], 2, 1, 4, 0.7) },
	},
	{
		name: "partial without rows", pos: 3, buffers: nativeCache,
		op: `part[3,0:2,0:6] = ATTENTION_TILE(q[0:8], kv[1,0:pos block 4 part 2 of 3,0,0:4], kv[1,0:pos block 4 part ` +
			`2 of 3,1,0:4], q[8:12], q[12:16]) head_dim=4 n_heads=2 n_kv_heads=1 scale=0.7 flags=2 row=pos block=4 ` +
			`part=2 parts=3`,
		want: func(in [][]float64) []float64 {
			none := []float64{0, 0, 0, 0, math.Inf(-1), 0}
			return append(append([]float64{}, none...), none...)
		},
	},
	{
		name: "attention of the profile", op: `out[0,0:12] = ATTENTION_TILE(q[0:6,0:2], k[2:9,0:3,0:2], ` +
			`v[2:9,0:3,0:2]) head_dim=2 n_heads=6 n_kv_heads=3 scale=0.7`,
		buffers: "buffer q IO_INPUT F32 [6,2] HBM rowmajor\nbuffer k KV_CACHE F32 [10,3,2] HBM rowmajor\nbuffer v " +
			"KV_CACHE F32 [10,3,2] HBM rowmajor\nbuffer out ACTIVATION F32 [1,12] HBM rowmajor",
		want: func(in [][]float64) []float64 { return normalised(attend(in[0], in[1], in[2], 6, 3, 2, 0.7), 2) },
	},
	{
		name: "partial of the profile", op: `out[0:6,0:4] = ATTENTION_TILE(q[0:6,0:2], k[2:9,0:3,0:2], ` +
			`v[2:9,0:3,0:2]) head_dim=2 n_heads=6 n_kv_heads=3 scale=0.7 flags=2`,
		buffers: "buffer q IO_INPUT F32 [6,2] HBM rowmajor\nbuffer k KV_CACHE F32 [10,3,2] HBM rowmajor\nbuffer v " +
			"KV_CACHE F32 [10,3,2] HBM rowmajor\nbuffer out ACTIVATION F32 [6,4] HBM rowmajor",
		want: func(in [][]float64) []float64 { return attend(in[0], in[1], in[2], 6, 3, 2, 0.7) },
	},
	{
		name: "attention of a batch", op: `out[0:2,0:12] = ATTENTION_TILE(q[0:2,0:6,0:2], k[0:2,0:7,0:3,0:2], ` +
			`v[0:2,0:7,0:3,0:2]) head_dim=2 n_heads=6 n_kv_heads=3 scale=0.7`,
		buffers: "buffer q IO_INPUT F32 [2,6,2] HBM rowmajor\nbuffer k KV_CACHE F32 [2,10,3,2] HBM rowmajor\nbuffer " +
			"v KV_CACHE F32 [2,10,3,2] HBM rowmajor\nbuffer out ACTIVATION F32 [2,12] HBM rowmajor",
		want: func(in [][]float64) (out []float64) {
			for b := range 2 {
				out = append(out, normalised(attend(in[0][b*12:][:12], in[1][b*42:][:42], in[2][b*42:][:42], 6, 3, 2,
					0.7), 2)...)
			}
			return out
		},
	},
	{
		name: "splits combined", op: `out[2:5] = ATTENTION_COMBINE(p[1:4,1,2:5], p[1:4,1,6:8]) splits=3`,
		buffers: "buffer p IO_INPUT F32 [4,2,8] HBM rowmajor\nbuffer out ACTIVATION F32 [6] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return each(make([]float64, 3), func(i int) float64 {
				acc, sum := 0.0, 0.0
				for s := range 3 {
					acc += in[0][s*3+i] * math.Exp(in[1][2*s])
					sum += in[1][2*s+1] * math.Exp(in[1][2*s])
				}
				return acc / sum
			})
		},
	},
	{
		name: "partials combined, one of them without rows",
		op:   `out[0,0:4] = ATTENTION_COMBINE(p[0:2,0:4], q[0:2,0:4], r[0:2,0:4]) head_dim=2 n_heads=2 n_kv_heads=1`,
		buffers: "buffer p IO_INPUT F32 [2,4] HBM rowmajor\nbuffer q IO_INPUT F32 [2,4] HBM rowmajor\nbuffer r " +
			"IO_INPUT F32 [2,4] HBM rowmajor\nbuffer out ACTIVATION F32 [1,4] HBM rowmajor",
		ints: map[string][]float32{"q": {0, 0, float32(math.Inf(-1)), 0, 0, 0, float32(math.Inf(-1)), 0}},
		want: func(in [][]float64) []float64 {
			return each(make([]float64, 4), func(i int) float64 {
				acc, sum, h := 0.0, 0.0, i/2*4
				for _, p := range [][]float64{in[0], in[2]} {
					acc += p[h+i%2] * math.Exp(p[h+2])
					sum += p[h+3] * math.Exp(p[h+2])
				}
				return acc / sum
			})
		},
	},
}

// attend returns the partials (acc, m, l) of every query head over keys and values [rows, kvHeads, hd].
func attend(q, k, v []float64, heads, kvHeads, hd int, scale float64) (out []float64) {
	for h := range heads {
		kv := h * kvHeads / heads
		var scores []float64
		top := math.Inf(-1)
		for r := 0; r < len(k)/kvHeads/hd; r++ {
			s := 0.0
			for i := range hd {
				s += q[h*hd+i] * k[(r*kvHeads+kv)*hd+i] * scale
			}
			scores, top = append(scores, s), max(top, s)
		}
		acc, sum := make([]float64, hd), 0.0
		for r, s := range scores {
			sum += math.Exp(s - top)
			for i := range acc {
				acc[i] += math.Exp(s-top) * v[(r*kvHeads+kv)*hd+i]
			}
		}
		out = append(append(out, acc...), top, sum)
	}
	return out
}

// sunk joins sinks, a score of each head without a value, to partials.
func sunk(parts []float64, hd int, sinks []float64) []float64 {
	head := -1
	return rowsOf(parts, hd+2, func(p []float64) []float64 {
		head++
		m, l := p[hd], p[hd+1]
		top := max(m, sinks[head])
		out := each(p[:hd], func(i int) float64 { return p[i] * math.Exp(m-top) })
		return append(out, top, l*math.Exp(m-top)+math.Exp(sinks[head]-top))
	})
}

// normalised divides partials by their sums.
func normalised(parts []float64, hd int) []float64 {
	return rowsOf(parts, hd+2, func(p []float64) []float64 {
		return each(p[:hd], func(i int) float64 { return p[i] / p[hd+1] })
	})
}
