package refvm

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

const (
	scoreBuffers = "buffer z IO_INPUT F32 [2,5] HBM rowmajor\nbuffer out ACTIVATION F32 [2,5] HBM rowmajor\n" +
		"buffer index ACTIVATION I32 [2,5] HBM rowmajor"
	familyBuffers = "buffer x IO_INPUT F32 [2,3] HBM rowmajor\nbuffer w WEIGHT F32 [4,6,3] HBM rowmajor\nbuffer ids " +
		"IO_INPUT I32 [4] HBM rowmajor\nbuffer b WEIGHT F32 [4,6] HBM rowmajor\nbuffer p IO_INPUT F32 [4] HBM " +
		"rowmajor\nbuffer out ACTIVATION F32 [2,12] HBM rowmajor"
)

// chosenRows are those of the matrices that ids name, of n rows from `first` on, for each id.
func chosenRows(x, w []float64, ids []int, n, first, all int) []float64 {
	var out []float64
	for j, id := range ids {
		out = append(out, matmul(x[j/2*3:j/2*3+3], w[(id*all+first)*3:][:n*3], 3)...)
	}
	return out
}

// expertCases are cases of [TestOps].
var expertCases = []caseOp{
	{
		name: "the largest, and the lower number of equals", op: `out[0:2,0:3], index[0:2,0:3] = TOPK(z[0:2,0:5]) k=3`,
		ints:    map[string][]float32{"z": {1, 3, -2, 3, 2, 0, float32(math.Copysign(0, -1)), 0, -1, -7}},
		buffers: scoreBuffers,
		want: func([][]float64) []float64 {
			return []float64{3, 3, 2, 0, 0, 0, 1, 3, 4, 0, 1, 2}
		},
	},
	{
		name: "the largest with a bias", buffers: scoreBuffers + "\nbuffer bias IO_INPUT F32 [5] HBM rowmajor",
		op:   `out[0:2,0:3], index[0:2,0:3] = TOPK(z[0:2,0:5], bias[0:5]) k=3`,
		ints: map[string][]float32{"z": {1, 3, -2, 3, 2, 0, 0, 0, -1, -7}, "bias": {0, 0, 7, -4, 1.5}},
		want: func([][]float64) []float64 {
			return []float64{-2, 2, 3, 0, 0, 0, 2, 4, 1, 2, 0, 1}
		},
	},
	{
		name: "the largest of the best groups", buffers: strings.ReplaceAll(scoreBuffers, "[2,5]", "[2,6]"),
		op:   `out[0:2,0:3], index[0:2,0:3] = TOPK(z[0:2,0:6]) k=3 groups=3 top_groups=2`,
		ints: map[string][]float32{"z": {9, -9, 2, 1, 0, 2, 1, 1, 3, -1, 2, 0}},
		want: func([][]float64) []float64 {
			return []float64{2, 2, 1, 3, 1, 1, 2, 5, 3, 2, 0, 1}
		},
	},
	{
		name: "the weights of SparseMixer", op: `out[0:2,0:2], index[0:2,0:2] = TOPK(z[0:2,0:5]) k=2 jitter=0.25`,
		ints:    map[string][]float32{"z": {4, 1, 3, 2, 1.75, -1, -2, -1.75, -4, -1.25}},
		buffers: scoreBuffers,
		want: func([][]float64) []float64 {
			e := math.Exp
			return []float64{1 / (1 + e(-1) + e(-2)), 1 / (1 + e(-1) + e(-1.25)),
				1 / (1 + e(-1) + e(-0.75) + e(-0.25)), 1 / (1 + e(-0.75) + e(-0.5)), 0, 2, 0, 4}
		},
	},
	{
		name: "renormalise with a bound of the sum", op: `out[0:1,1:4] = RENORMALISE(z[0:1,2:5]) extra=0.5 least=3.0`,
		ints: map[string][]float32{"z": {0, 0, 0.5, 0.25, 1.25, 0, 0, 0, 0, 0}}, buffers: scoreBuffers,
		want: func([][]float64) []float64 { return []float64{0.5 / 3, 0.25 / 3, 1.25 / 3} },
	},
	{
		name: "renormalise with something added to the sum", op: `out[0:1,1:4] = RENORMALISE(z[0:1,2:5]) extra=0.5`,
		ints: map[string][]float32{"z": {0, 0, 0.5, 0.25, 1.25, 0, 0, 0, 0, 0}}, buffers: scoreBuffers,
		want: func([][]float64) []float64 { return []float64{0.2, 0.1, 0.5} },
	},
	{
		name: "renormalise", op: `out[0:2,1:4] = RENORMALISE(z[0:2,2:5])`, buffers: scoreBuffers,
		want: func(in [][]float64) []float64 {
			return rowsOf(in[0], 3, func(x []float64) []float64 {
				return each(x, func(i int) float64 { return x[i] / (x[0] + x[1] + x[2]) })
			})
		},
	},
	{
		name: "products with selected matrices",
		op:   `out[0:2,0:12] = SELECTED_TILE(x[0:2,0:3], w[0:4,0:6,0:3], ids[0:4])`,
		ints: map[string][]float32{"ids": {3, 0, 1, 3}}, buffers: familyBuffers,
		want: func(in [][]float64) []float64 { return chosenRows(in[0], in[1], []int{3, 0, 1, 3}, 6, 0, 6) },
	},
	{
		name: "some rows of theirs", ints: map[string][]float32{"ids": {3, 0, 1, 3}}, buffers: familyBuffers,
		op: `out[0:2,0:7] = SELECTED_TILE(x[0:2,0:3], w[0:4,0:6,0:3], ids[0:4]) first_row=4 rows=7`,
		want: func(in [][]float64) []float64 {
			all := chosenRows(in[0], in[1], []int{3, 0, 1, 3}, 6, 0, 6)
			return slices.Concat(all[4:11], all[16:23])
		},
	},
	{
		name: "of a family whose matrices lack rows", ints: map[string][]float32{"ids": {1, 0, 2, 1}},
		op:      `out[0:2,0:4] = SELECTED_TILE(x[0:2,0:3], w[1:4,2:4,0:3], ids[0:4])`,
		buffers: familyBuffers,
		want:    func(in [][]float64) []float64 { return chosenRows(in[0], in[1], []int{1, 0, 2, 1}, 2, 0, 2) },
	},
	{
		name: "with a bias", ints: map[string][]float32{"ids": {3, 0, 1, 3}}, buffers: familyBuffers,
		op: `out[0:2,0:12] = SELECTED_TILE(x[0:2,0:3], w[0:4,0:6,0:3], ids[0:4], b[0:4,0:6])`,
		want: func(in [][]float64) []float64 {
			y := chosenRows(in[0], in[1], []int{3, 0, 1, 3}, 6, 0, 6)
			return each(y, func(i int) float64 { return y[i] + in[3][[]int{3, 0, 1, 3}[i/6]*6+i%6] })
		},
	},
	{
		name: "with weights of the bias", ints: map[string][]float32{"ids": {3, 0, 1, 3}}, buffers: familyBuffers,
		op: `out[0:2,0:12] = SELECTED_TILE(x[0:2,0:3], w[0:4,0:6,0:3], ids[0:4], b[0:4,0:6], p[0:4])`,
		want: func(in [][]float64) []float64 {
			y := chosenRows(in[0], in[1], []int{3, 0, 1, 3}, 6, 0, 6)
			return each(y, func(i int) float64 { return y[i] + in[4][i/6]*in[3][[]int{3, 0, 1, 3}[i/6]*6+i%6] })
		},
	},
	{
		name: "sum of rows", op: `out[0:1,0:5] = SUM_ROWS(z[0:2,0:5]) parts=2`, buffers: scoreBuffers,
		want: func(in [][]float64) []float64 {
			return each(in[0][:5], func(i int) float64 { return in[0][i] + in[0][5+i] })
		},
	},
	{
		name: "scaled blocks", op: `out[0:2,0:3] = SCALE_BLOCKS(z[0:2,1:4], z[0:2,0:4]) block=2 first=3`,
		buffers: scoreBuffers,
		want: func(in [][]float64) []float64 { // elements 3, 4 and 5 are of blocks 1, 2 and 2
			return []float64{in[0][0] * in[1][1], in[0][1] * in[1][2], in[0][2] * in[1][2],
				in[0][3] * in[1][5], in[0][4] * in[1][6], in[0][5] * in[1][6]}
		},
	},
	{
		name: "sigmoid", op: `out[0:4] = SIGMOID(x[2:6])`, buffers: vectors, want: func(in [][]float64) []float64 {
			return each(in[0], func(i int) float64 { return 1 / (1 + math.Exp(-in[0][i])) })
		},
	},
	{
		name: "a gate within bounds", op: `out[0:3] = CLAMPED_SILU_MUL(x[0:6]) cap=0.75 scale=1.7`, buffers: vectors,
		ints: map[string][]float32{"x": {0.5, 0.25, 2, -1.5, -3, 1.25}},
		want: func(in [][]float64) []float64 {
			return each(in[0][:3], func(i int) float64 {
				g, u := min(in[0][2*i], 0.75), max(-0.75, min(in[0][2*i+1], 0.75))
				return g / (1 + math.Exp(-1.7*g)) * (u + 1)
			})
		},
	},
}

// Whatever a router computes, the k experts that it chooses are distinct and are there: those that are not numbers come
// last, in the order of their numbers, and infinities are numbers.
func TestTopKIsATotalOrder(t *testing.T) {
	lot := rand.New(rand.NewPCG(1, 2))
	odd := []float32{nan, float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1, 1, -1}
	flat := unroll(t, parse(t, oneTask(scoreBuffers, `out[0:2,0:4], index[0:2,0:4] = TOPK(z[0:2,0:5]) k=4`)))
	vm, err := New(flat, noise(1), Options{})
	require.NoError(t, err)
	for range 500 {
		z := make([]float32, 10)
		for i := range z {
			z[i] = odd[lot.IntN(len(odd))]
		}
		require.NoError(t, vm.Write("z", z))
		require.NoError(t, vm.Step(0, -1, Order{}))
		ids, err := vm.Read("index")
		require.NoError(t, err)
		for b := range 2 {
			left := []int{0, 1, 2, 3, 4}
			for r := range 4 {
				best := left[0]
				for _, i := range left[1:] {
					p, q := z[b*5+i], z[b*5+best]
					if p > q || p == p && q != q {
						best = i
					}
				}
				require.Equal(t, best, int(ids[b*5+r]), "%v", z)
				left = slices.DeleteFunc(left, func(i int) bool { return i == best })
			}
		}
	}
}

// Of a family those matrices alone are read that ids name, which are within it.
func TestSelectedMatricesAreRead(t *testing.T) {
	const op = `out[0:2,0:12] = SELECTED_TILE(x[0:2,0:3], w[0:4,0:6,0:3], ids[0:4])`
	vm, err := New(unroll(t, parse(t, oneTask(familyBuffers, op))), noise(1), Options{Record: true})
	require.NoError(t, err)
	require.NoError(t, vm.Write("ids", []float32{2, 0, 0, 2}))
	require.NoError(t, vm.Step(0, -1, Order{}))
	read := map[int]bool{}
	for _, touch := range vm.Touched(0) {
		if vm.flat.Buffers[touch.Buf].Name == "w" {
			require.Equal(t, 18, touch.N)
			read[touch.Lo/18] = true
		}
	}
	require.Equal(t, map[int]bool{0: true, 2: true}, read)
	require.NoError(t, vm.Write("ids", []float32{2, 0, 4, 2}))
	var bad *diag.Diagnostic
	require.ErrorAs(t, vm.Step(0, -1, Order{}), &bad)
	require.Equal(t, CodeValue.ID, bad.Code)
}
