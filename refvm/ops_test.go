package refvm

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A caseOp is one op, with what it yields for the elements of its input views, computed here in float64 and as
// plainly as possible. Buffers named x, y, … are inputs; out, out2 are written.
type caseOp struct {
	name    string
	pos     int
	buffers string
	op      string
	ints    map[string][]float32 // contents of integer inputs
	want    func(in [][]float64) []float64
}

const stopBuffers = "buffer ids IO_INPUT I32 [4] HBM rowmajor\nbuffer stops IO_INPUT I32 [4] HBM rowmajor\n" +
	"buffer last IO_INPUT I32 [1] HBM rowmajor\nbuffer index ACTIVATION I32 [4] HBM rowmajor"

var opCases = []caseOp{
	{name: "nothing", buffers: `buffer out ACTIVATION F32 [2] HBM rowmajor`, op: `NOP()`},
	{
		name: "copy of a part", op: `out[0:2,1:3] = COPY(x[2:4,0:2])`,
		buffers: "buffer x IO_INPUT F32 [4,3] HBM rowmajor\nbuffer out ACTIVATION F32 [3,3] HBM rowmajor",
		want:    func(in [][]float64) []float64 { return in[0] },
	},
	{
		name: "copy to another shape, every other block", op: `out[0:8] = COPY(x[1:9 block 2 part 1 of 2,0:2])`,
		buffers: "buffer x IO_INPUT F32 [10,3] HBM rowmajor\nbuffer out ACTIVATION F32 [8] HBM rowmajor",
		want:    func(in [][]float64) []float64 { return in[0] },
	},
	{
		name: "copy of integers", op: `out[1] = COPY(x[2])`, ints: map[string][]float32{"x": {1, 2, 16777216}},
		buffers: "buffer x IO_INPUT I32 [3] HBM rowmajor\nbuffer out ACTIVATION I32 [2] HBM rowmajor",
		want:    func(in [][]float64) []float64 { return in[0] },
	},
	{
		name: "embed columns", op: `out[0:2,0:3], out2[0:6] = EMBED(ids[0:2], w[0:5,2:5])`,
		ints: map[string][]float32{"ids": {4, 1}},
		buffers: "buffer ids IO_INPUT I32 [2] HBM rowmajor\nbuffer w WEIGHT F32 [5,6] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,3] HBM rowmajor\nbuffer out2 ACTIVATION F32 [6] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			rows := append(append([]float64{}, in[1][12:15]...), in[1][3:6]...)
			return append(rows, rows...)
		},
	},
	{
		name: "embed times a number", op: `out[0:2,0:3] = EMBED(ids[0:2], w[0:5,2:5]) scale=2.5`,
		ints: map[string][]float32{"ids": {4, 1}},
		buffers: "buffer ids IO_INPUT I32 [2] HBM rowmajor\nbuffer w WEIGHT F32 [5,6] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,3] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			rows := append(append([]float64{}, in[1][12:15]...), in[1][3:6]...)
			return each(rows, func(i int) float64 { return rows[i] * 2.5 })
		},
	},
	{
		name: "embed what is given", op: `out[0:2,0:3] = EMBED(ids[0:2], w[0:5,2:5], x[0:2,0:3]) scale=2.5`,
		ints: map[string][]float32{"ids": {1, 5}},
		buffers: "buffer ids IO_INPUT I32 [2] HBM rowmajor\nbuffer w WEIGHT F32 [5,6] HBM rowmajor\nbuffer x " +
			"IO_INPUT F32 [2,3] HBM rowmajor\nbuffer out ACTIVATION F32 [2,3] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			row := in[1][3:6] // as many as the view has are read of the table
			return append(each(row, func(i int) float64 { return row[i] * 2.5 }), in[2][3:6]...)
		},
	},
	{
		name: "embed as reshape", op: `out[0:2,0:2,0:2] = EMBED(ids[0:2], x[0:2,0:4])`,
		buffers: "buffer ids IO_INPUT I32 [2] HBM rowmajor\nbuffer x IO_INPUT F32 [2,4] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,2,2] HBM rowmajor",
		want: func(in [][]float64) []float64 { return in[1] },
	},
	{
		name: "rmsnorm", op: `out[0:2,0:7] = RMSNORM(x[0:2,0:7], w[0:7]) eps=0.5`,
		buffers: "buffer x IO_INPUT F32 [2,7] HBM rowmajor\nbuffer w WEIGHT F32 [7] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,7] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return rowsOf(in[0], 7, func(x []float64) []float64 {
				square := 0.0
				for _, f := range x {
					square += f * f / 7
				}
				return each(x, func(i int) float64 { return x[i] / math.Sqrt(square+0.5) * in[1][i] })
			})
		},
	},
	{
		name: "rmsnorm with offset", op: `out[0:2,0:7] = RMSNORM(x[0:2,0:7], w[0:7]) eps=0.5 unit_offset=1`,
		buffers: "buffer x IO_INPUT F32 [2,7] HBM rowmajor\nbuffer w WEIGHT F32 [7] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,7] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return rowsOf(in[0], 7, func(x []float64) []float64 {
				square := 0.0
				for _, f := range x {
					square += f * f / 7
				}
				return each(x, func(i int) float64 { return x[i] / math.Sqrt(square+0.5) * (1 + in[1][i]) })
			})
		},
	},
	{
		name: "rmsnorm of heads", op: `out[0:2,0:9] = RMSNORM(x[0:2,0:9], w[0:3]) eps=0.5 head_dim=3`,
		buffers: "buffer x IO_INPUT F32 [2,9] HBM rowmajor\nbuffer w WEIGHT F32 [3] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,9] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return rowsOf(in[0], 3, func(x []float64) []float64 {
				square := (x[0]*x[0] + x[1]*x[1] + x[2]*x[2]) / 3
				return each(x, func(i int) float64 { return x[i] / math.Sqrt(square+0.5) * in[1][i] })
			})
		},
	},
	{
		name: "rmsnorm of a part", op: `out[0:2,0:3] = RMSNORM(x[0:2,4:7], w[0:3], x[0:2,0:7]) eps=0.5`,
		buffers: "buffer x IO_INPUT F32 [2,7] HBM rowmajor\nbuffer w WEIGHT F32 [3] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [2,3] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return rowsOf(in[2], 7, func(x []float64) []float64 {
				square := 0.0
				for _, f := range x {
					square += f * f / 7
				}
				return each(x[4:], func(i int) float64 { return x[4+i] / math.Sqrt(square+0.5) * in[1][i] })
			})
		},
	},
	{name: "layernorm", op: `out[0:2,0:5] = LAYERNORM(x[0:2,0:5], w[0:5]) eps=0.25`, buffers: layernormBuffers,
		want: naiveLayerNorm},
	{name: "layernorm without weights", op: `out[0:2,0:5] = LAYERNORM(x[0:2,0:5]) eps=0.25`,
		buffers: layernormBuffers, want: naiveLayerNorm},
	{
		name:    "layernorm with offset",
		op:      `out[0:2,0:5] = LAYERNORM(x[0:2,0:5], w[0:5], b[0:5]) eps=0.25 unit_offset=1`,
		buffers: layernormBuffers, want: func(in [][]float64) []float64 {
			return naiveLayerNorm([][]float64{in[0], each(in[1], func(i int) float64 { return 1 + in[1][i] }), in[2]})
		},
	},
	{name: "layernorm with bias", op: `out[0:2,0:5] = LAYERNORM(x[0:2,0:5], w[0:5], b[0:5]) eps=0.25`,
		buffers: layernormBuffers, want: naiveLayerNorm},
	{name: "gemv of a span", op: `out[3:8] = GEMV_TILE(x[0:19], w[3:8,0:19])`, buffers: gemvBuffers,
		want: func(in [][]float64) []float64 { return matmul(in[0], in[1], 19) }},
	{name: "gemv of some columns", op: `out[3:8] = GEMV_TILE(x[0:6], w[3:8,2:8])`, buffers: gemvBuffers,
		want: func(in [][]float64) []float64 { return matmul(in[0], in[1], 6) }},
	{name: "gemv of nothing", op: `out[4:4] = GEMV_TILE(x[0:19], w[4:4,0:19])`, buffers: gemvBuffers,
		want: func([][]float64) []float64 { return nil }},
	{
		name: "gemv with bias", op: `out[3:8] = GEMV_TILE(x[0:19], w[3:8,0:19], b[3:8])`, buffers: gemvBuffers,
		want: func(in [][]float64) []float64 {
			y := matmul(in[0], in[1], 19)
			return each(y, func(i int) float64 { return y[i] + in[2][i] })
		},
	},
	{
		name: "gemm of a span", op: `out[0:3,2:5] = GEMM_TILE(x[0:3,0:9], w[2:5,0:9])`,
		buffers: "buffer x IO_INPUT F32 [3,9] HBM rowmajor\nbuffer w WEIGHT F32 [6,9] HBM rowmajor\nbuffer out " +
			"ACTIVATION F32 [3,6] HBM rowmajor",
		want: func(in [][]float64) []float64 { return matmul(in[0], in[1], 9) },
	},
	{
		name: "gemv of int8", op: `out[2:6] = GEMV_TILE(x[0:10], q[2:6,0:10], s[2:6,0:3]) qdtype=6 group=4`,
		buffers: quantBuffers("I8"),
		want:    func(in [][]float64) []float64 { return matmul(in[0], widened(in[1], in[2], nil, 10, 4), 10) },
	},
	{
		name: "gemv of int4 with zeros", op: `out[2:6] = GEMV_TILE(x[0:10], q[2:6,0:10], s[2:6,0:3], z[2:6,0:3]) ` +
			`qdtype=7 group=4`, buffers: quantBuffers("I4"),
		want: func(in [][]float64) []float64 { return matmul(in[0], widened(in[1], in[2], in[3], 10, 4), 10) },
	},
	{
		name: "dequant", op: `wide[1:3,0:10] = DEQUANT(q[1:3,0:10], s[1:3,0:3]) qdtype=6 group=4`,
		buffers: quantBuffers("I8"),
		want:    func(in [][]float64) []float64 { return widened(in[0], in[1], nil, 10, 4) },
	},
	{
		name: "dequant with zeros", op: `wide[1:3,0:10] = DEQUANT(q[1:3,0:10], s[1:3,0:3], z[1:3,0:3]) qdtype=6 ` +
			`group=4`, buffers: quantBuffers("I8"),
		want: func(in [][]float64) []float64 { return widened(in[0], in[1], in[2], 10, 4) },
	},
	{name: "silu of two", op: `out[0:3] = SILU_MUL(x[0:3], y[1:4])`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return in[0][i] / (1 + math.Exp(-in[0][i])) * in[1][i] })
		}},
	{name: "silu of one interleaved", op: `out[0:3] = SILU_MUL(x[0:6])`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0][:3], func(i int) float64 {
				return in[0][2*i] / (1 + math.Exp(-in[0][2*i])) * in[0][2*i+1]
			})
		}},
	{name: "gelu, tanh form, of two", op: `out[0:3] = GELU_TANH_MUL(x[0:3], y[1:4])`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return tanhGELU(in[0][i]) * in[1][i] })
		}},
	{name: "gelu, tanh form, of one interleaved", op: `out[0:3] = GELU_TANH_MUL(x[0:6])`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0][:3], func(i int) float64 { return tanhGELU(in[0][2*i]) * in[0][2*i+1] })
		}},
	{name: "gelu, tanh form", op: `out[0:4] = GELU_TANH(x[2:6])`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return tanhGELU(in[0][i]) })
		}},
	{name: "relu", op: `out[0:4] = RELU(x[2:6])`, buffers: vectors, want: func(in [][]float64) []float64 {
		return each(in[0], func(i int) float64 { return max(0, in[0][i]) })
	}},
	{name: "relu squared", op: `out[0:4] = RELU2(x[2:6])`, buffers: vectors, want: func(in [][]float64) []float64 {
		return each(in[0], func(i int) float64 { return max(0, in[0][i]) * max(0, in[0][i]) })
	}},
	{name: "xielu", op: `out[0:4] = XIELU(x[2:6], y[0:4])`, buffers: vectors, want: func(in [][]float64) []float64 {
		softplus := func(v float64) float64 { return math.Log1p(math.Exp(v)) }
		p, n, beta, eps := in[1][0], in[1][1], in[1][2], in[1][3]
		return each(in[0], func(i int) float64 {
			if x := in[0][i]; x <= 0 {
				return (beta+softplus(n))*(math.Expm1(min(x, eps))-x) + beta*x
			}
			return softplus(p)*in[0][i]*in[0][i] + beta*in[0][i]
		})
	}},
	{name: "gelu", op: `out[0:4] = GELU(x[2:6])`, buffers: vectors, want: func(in [][]float64) []float64 {
		return each(in[0], func(i int) float64 { return in[0][i] * (1 + math.Erf(in[0][i]/math.Sqrt2)) / 2 })
	}},
	{name: "add", op: `out[0:4] = ADD(x[2:6], y[0:4])`, buffers: vectors, want: func(in [][]float64) []float64 {
		return each(in[0], func(i int) float64 { return in[0][i] + in[1][i] })
	}},
	{name: "mul", op: `out[0:4] = MUL(x[2:6], y[0:4])`, buffers: vectors, want: func(in [][]float64) []float64 {
		return each(in[0], func(i int) float64 { return in[0][i] * in[1][i] })
	}},
	{name: "scale", op: `out[0:4] = MUL(x[2:6]) scale=2.5`, buffers: vectors, want: func(in [][]float64) []float64 {
		return each(in[0], func(i int) float64 { return in[0][i] * 2.5 })
	}},
	{name: "allreduce", op: `out[0:4] = ALLREDUCE_SHARD(x[2:6], y[0:4], x[0:4])`, buffers: vectors,
		want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return in[0][i] + in[1][i] + in[2][i] })
		}},
	{
		name: "softmax", op: `out[0:2,0:4] = SOFTMAX(x[1:3,0:4])`,
		buffers: "buffer x IO_INPUT F32 [3,5] HBM rowmajor\nbuffer out ACTIVATION F32 [2,4] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			return rowsOf(in[0], 4, func(x []float64) []float64 {
				sum := 0.0
				for _, f := range x {
					sum += math.Exp(f)
				}
				return each(x, func(i int) float64 { return math.Exp(x[i]) / sum })
			})
		},
	},
	{
		name: "append", pos: 3, op: `cache[1,pos,0,0:4] = KV_APPEND(x[2:6])`,
		buffers: vectors + "\nbuffer cache KV_CACHE F32 [2,8,2,4] HBM rowmajor",
		want:    func(in [][]float64) []float64 { return in[0] },
	},
	{
		name: "append of another's row", pos: 3, op: `cache[1,pos:pos+1 block 2 part 0 of 2,0,0:4] = KV_APPEND(x[2:6])`,
		buffers: vectors + "\nbuffer cache KV_CACHE F32 [2,8,2,4] HBM rowmajor",
		want:    func(in [][]float64) []float64 { return nil },
	},
	{
		name: "best of a span", op: `out[2], index[1] = SAMPLE_ARGMAX(x[2:6]) partial=1 first=100`,
		buffers: vectors + "\nbuffer index ACTIVATION I32 [2] HBM rowmajor",
		want: func(in [][]float64) []float64 {
			at := largest(in[0])
			return []float64{in[0][at], float64(100 + at)}
		},
	},
	{
		name: "best of nothing", op: `out[2], index[1] = SAMPLE_ARGMAX(x[2:2]) partial=1 first=100`,
		buffers: vectors + "\nbuffer index ACTIVATION I32 [2] HBM rowmajor",
		want:    func(in [][]float64) []float64 { return []float64{math.Inf(-1), math.MaxInt32 + 1} },
		// what float32 makes of it
	},
	{
		name: "best of bests, lowest index among equals", op: `index[0] = SAMPLE_ARGMAX(z[0:4], ids[0:4])`,
		ints: map[string][]float32{"ids": {9, 8, 5, 7}, "z": {1, 3, 2, 3}},
		buffers: "buffer z IO_INPUT F32 [4] HBM rowmajor\nbuffer ids IO_INPUT I32 [4] HBM rowmajor\nbuffer index " +
			"ACTIVATION I32 [2] HBM rowmajor",
		want: func([][]float64) []float64 { return []float64{7} },
	},
	{
		name: "the tokens that end a run", op: `index[0:4] = STOP(ids[0:4], stops[1:3], last[0])`,
		ints: map[string][]float32{"ids": {9, 8, 5, -1}, "stops": {9, 5, 8, 7}, "last": {0}}, buffers: stopBuffers,
		want: func([][]float64) []float64 { return []float64{0, 1, 1, 0} },
	},
	{
		name: "no token ends a run", op: `index[1:3] = STOP(ids[0:2], stops[0:0], last[0])`,
		ints: map[string][]float32{"ids": {9, 8, 5, 7}, "stops": {9, 5, 8, 7}, "last": {0}}, buffers: stopBuffers,
		want: func([][]float64) []float64 { return []float64{0, 0} },
	},
	{
		name: "the last step ends it", op: `index[0:2] = STOP(ids[0:2], stops[2:3], last[0])`,
		ints: map[string][]float32{"ids": {9, 8, 5, 7}, "stops": {9, 5, 8, 7}, "last": {1}}, buffers: stopBuffers,
		want: func([][]float64) []float64 { return []float64{1, 1} },
	},
	{
		name: "argmax of no numbers", op: `index[0:2] = SAMPLE_ARGMAX(z[0:2,0:3])`,
		ints:    map[string][]float32{"z": {nan, nan, nan, nan, 0, nan}},
		buffers: "buffer z IO_INPUT F32 [2,3] HBM rowmajor\nbuffer index ACTIVATION I32 [2] HBM rowmajor",
		want:    func([][]float64) []float64 { return []float64{0, 1} },
	},
	{
		name: "best of bests of nothing", op: `index[0] = SAMPLE_ARGMAX(z[0:2], ids[0:2])`,
		ints: map[string][]float32{"ids": {7, 5}, "z": {nan, nan}},
		buffers: "buffer z IO_INPUT F32 [2] HBM rowmajor\nbuffer ids IO_INPUT I32 [2] HBM rowmajor\nbuffer index " +
			"ACTIVATION I32 [2] HBM rowmajor",
		want: func([][]float64) []float64 { return []float64{0} },
	},
	{
		name: "argmax of a batch", op: `index[0:2] = SAMPLE_ARGMAX(z[0:2,0:3])`,
		ints:    map[string][]float32{"z": {1, 3, 3, 2, 0, 1}},
		buffers: "buffer z IO_INPUT F32 [2,3] HBM rowmajor\nbuffer index ACTIVATION I32 [2] HBM rowmajor",
		want:    func([][]float64) []float64 { return []float64{1, 0} },
	},
}

var nan = float32(math.NaN())

const (
	vectors = "buffer x IO_INPUT F32 [6] HBM rowmajor\nbuffer y IO_INPUT F32 [6] HBM rowmajor\nbuffer out " +
		"ACTIVATION F32 [6] HBM rowmajor"
	layernormBuffers = "buffer x IO_INPUT F32 [2,5] HBM rowmajor\nbuffer w WEIGHT F32 [5] HBM rowmajor\nbuffer b " +
		"WEIGHT F32 [5] HBM rowmajor\nbuffer out ACTIVATION F32 [2,5] HBM rowmajor"
	gemvBuffers = "buffer x IO_INPUT F32 [19] HBM rowmajor\nbuffer w WEIGHT F32 [9,19] HBM rowmajor\nbuffer b " +
		"WEIGHT F32 [9] HBM rowmajor\nbuffer out ACTIVATION F32 [9] HBM rowmajor"
)

func quantBuffers(dtype string) string {
	return fmt.Sprintf(`buffer x IO_INPUT F32 [10] HBM rowmajor
buffer q WEIGHT %s [6,10] HBM rowmajor
buffer s WEIGHT F16 [6,3] HBM rowmajor
buffer z WEIGHT F16 [6,3] HBM rowmajor
buffer out ACTIVATION F32 [6] HBM rowmajor
buffer wide ACTIVATION F32 [6,10] HBM rowmajor`, dtype)
}

// run runs the op of a case in a recording VM and returns the VM with the elements of the op's inputs.
func (c *caseOp) run(t *testing.T, round Rounding) (*VM, *ir.FlatOp, [][]float64) {
	flat := unroll(t, parse(t, oneTask(c.buffers, c.op)))
	vm, err := New(flat, noise(1), Options{Record: true, Round: round})
	require.NoError(t, err)
	for i := range flat.Buffers {
		b := &flat.Buffers[i]
		values := c.ints[b.Name]
		if values == nil && b.DType != ir.I32 && !(b.Kind == ir.Weight || b.Kind == ir.Activation) {
			values, _ = noise(uint64(i)).Floats(b, 0)
		}
		if values != nil {
			require.NoError(t, vm.Write(b.Name, values))
		}
	}
	op := &flat.Tasks[0].Ops[0]
	in := make([][]float64, len(op.In))
	for k := range op.In {
		values, err := vm.Read(flat.Buffers[op.InBuf[k]].Name)
		require.NoError(t, err)
		for _, at := range elements(&flat.Buffers[op.InBuf[k]], op.In[k].Dims, c.pos) {
			in[k] = append(in[k], float64(values[at]))
		}
	}
	require.NoError(t, vm.Step(c.pos, -1, Order{}))
	return vm, op, in
}

func TestOps(t *testing.T) {
	seen := map[ir.Opcode]bool{ir.FUSED: true}
	for _, c := range slices.Concat(opCases, ropeCases, attentionCases, capCases, drawCases, expertCases,
		recurrentCases) {
		t.Run(c.name, func(t *testing.T) {
			vm, op, in := c.run(t, None)
			seen[op.Code] = true
			requireFootprint(t, vm, c.pos)
			var want []float64
			if c.want != nil {
				want = c.want(in)
			}
			for k := range op.Out {
				b := &vm.flat.Buffers[op.OutBuf[k]]
				got, err := vm.Read(b.Name)
				require.NoError(t, err)
				for _, at := range elements(b, op.Out[k].Dims, c.pos) {
					require.NotEmpty(t, want, "the op should yield less")
					if math.IsInf(want[0], 0) {
						require.Equal(t, want[0], float64(got[at]))
					} else {
						require.InDelta(t, want[0], float64(got[at]), 2e-6*(1+math.Abs(want[0])), "element %d of %s",
							at, b.Name)
					}
					want = want[1:]
				}
			}
			require.Empty(t, want, "the op should yield more")
		})
	}
	for code := range kernels {
		require.True(t, seen[ir.Opcode(code)], "%v is not tested", ir.Opcode(code))
	}
}
