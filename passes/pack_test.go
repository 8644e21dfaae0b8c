package passes

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/ir/half"
	"amkc/ir/transform"
)

// randomWeights supplies a program with random weights stored in the given dtype.
func randomWeights(t testing.TB, s *State, dtype checkpoint.DType) *Weights {
	c, err := checkpoint.NewRandom(s.Source.Config, 5, importers.RequiredTensors(s.Graph, dtype),
		importers.UnitOffsets(s.Graph))
	require.NoError(t, err)
	return NewWeights(c, s.Graph, s.Matrices)
}

func decodeAt(d ir.DType, b []byte) float32 {
	var out [1]float32
	switch d {
	case ir.F16:
		half.DecodeF16(out[:], b[:2])
	case ir.BF16:
		half.DecodeBF16(out[:], b[:2])
	default:
		half.DecodeF32(out[:], b[:4])
	}
	return out[0]
}

// Packed bytes hold each element where ir.Buffer says it is, and zero everywhere else.
func TestPackedBytesFollowTheLayout(t *testing.T) {
	for seed := range uint64(12) {
		s := sampled(t, rand.New(rand.NewPCG(seed, 21)))
		lowered(t, s, "exchange")
		stored := []checkpoint.DType{checkpoint.F32, checkpoint.F16, checkpoint.BF16}[seed%3]
		w := randomWeights(t, s, stored)
		for k := range s.Program.Buffers {
			b := &s.Program.Buffers[k]
			if b.Kind != ir.Weight && b.Kind != ir.Const {
				continue
			}
			for i := b.First; i < b.First+max(1, b.Count); i++ {
				values, err := w.Floats(b, i)
				require.NoError(t, err)
				var out bytes.Buffer
				require.NoError(t, w.Pack(&out, b, i))
				packed := out.Bytes()
				require.Len(t, packed, b.Bytes(), b.Name)
				size := b.DType.Bits() / 8
				for e, v := range values {
					at := b.Offset(e)
					if got := decodeAt(b.DType, packed[at:]); got != v { // millions of them
						require.Equal(t, v, got, "%s element %d, stored as %s", b.Name, e, stored)
					}
					clear(packed[at : at+size])
				}
				require.Equal(t, make([]byte, len(packed)), packed, "%s: padding is zero", b.Name)
			}
		}
	}
}

// Rows reach the buffer in the order that its pieces say.
func TestRowOrder(t *testing.T) {
	specs := []checkpoint.Spec{{Name: "q", DType: checkpoint.F32, Shape: []int{8, 3}},
		{Name: "k", DType: checkpoint.F32, Shape: []int{4, 3}},
		{Name: "gate", DType: checkpoint.F32, Shape: []int{3, 3}},
		{Name: "up", DType: checkpoint.F32, Shape: []int{3, 3}}}
	c, err := checkpoint.NewRandom(nil, 1, specs, nil)
	require.NoError(t, err)
	w := NewWeights(c, &ir.Graph{}, nil)
	source := map[string][]float32{}
	for _, s := range specs {
		tensor, _ := c.Tensor(s.Name)
		source[s.Name] = make([]float32, s.Shape[0]*3)
		require.NoError(t, tensor.ReadRowsF32(source[s.Name], 0, s.Shape[0]))
	}
	row := func(name string, r int) []float32 { return source[name][3*r : 3*r+3] }
	check := func(b ir.Buffer, want ...[]float32) {
		got, err := w.Floats(&b, 0)
		require.NoError(t, err)
		for r := range want {
			require.Equal(t, want[r], got[3*r:3*r+3], "row %d", r)
		}
		require.Len(t, got, 3*len(want))
	}
	check(ir.Buffer{Name: "qk", Kind: ir.Weight, Shape: []int{12, 3},
		Pieces: []ir.Piece{{Key: "q", Chain: transform.Of(transform.Pairs, 4)}, {Key: "k"}}},
		row("q", 0), row("q", 2), row("q", 1), row("q", 3), row("q", 4), row("q", 6), row("q", 5), row("q", 7),
		row("k", 0), row("k", 1), row("k", 2), row("k", 3))
	check(ir.Buffer{Name: "gu", Kind: ir.Weight, Shape: []int{6, 3},
		Pieces: []ir.Piece{{Key: "gate", Chain: transform.Of(transform.Even)},
			{Key: "up", Chain: transform.Of(transform.Odd)}}},
		row("gate", 0), row("up", 0), row("gate", 1), row("up", 1), row("gate", 2), row("up", 2))
}

func TestWeightsRoundToNearestEven(t *testing.T) {
	values := []float32{1, 1 + 1.0/256, 1 + 3.0/256, -1.00390625, 3.14159265, 1e-8, 65000}
	dir := modeltest.WriteModel(t, modeltest.TinyConfig, map[string]modeltest.Stored{"w": {DType: "F32",
		Shape: []int{len(values)}, Data: modeltest.F32Bytes(values...)}})
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	for dtype, round := range map[ir.DType]func(float32) float32{ir.BF16: half.RoundBF16, ir.F16: half.RoundF16} {
		b := ir.Buffer{Name: "w", Kind: ir.Weight, DType: dtype, Shape: []int{len(values)},
			Pieces: []ir.Piece{{Key: "w"}}}
		got, err := NewWeights(c, &ir.Graph{}, nil).Floats(&b, 0)
		require.NoError(t, err)
		for i, v := range values {
			require.Equal(t, round(v), got[i], "%s of %g", dtype, v)
		}
	}
}

func TestOverflowIsRefused(t *testing.T) {
	dir := modeltest.WriteModel(t, modeltest.TinyConfig, map[string]modeltest.Stored{"w": {DType: "F32", Shape: []int{2,
		2}, Data: modeltest.F32Bytes(1, 2, 1e5, 3)},
		"inf":  {DType: "F32", Shape: []int{1}, Data: modeltest.F32Bytes(float32(math.Inf(1)))},
		"infs": {DType: "F32", Shape: []int{1, 1}, Data: modeltest.F32Bytes(float32(math.Inf(1)))}})
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	w := NewWeights(c, &ir.Graph{}, nil)
	b := ir.Buffer{Name: "w", Kind: ir.Weight, DType: ir.F16, Shape: []int{2, 2}, Pieces: []ir.Piece{{Key: "w"}}}
	err = w.Pack(io.Discard, &b, 0)
	require.ErrorContains(t, err, "tensor w: error: element [1 0] is 100000, which F16 cannot hold; want --dtype "+
		"bf16 or fp32 [AMK1115]")
	b = ir.Buffer{Name: "inf", Kind: ir.Weight, DType: ir.F16, Shape: []int{1}, Pieces: []ir.Piece{{Key: "inf"}}}
	require.NoError(t, w.Pack(io.Discard, &b, 0), "what was infinite before stays so")
	b = ir.Buffer{Name: "inf", Kind: ir.Weight, DType: ir.I4, Shape: []int{1, 1}, Pieces: []ir.Piece{{Key: "infs"}},
		Layout: ir.Layout{Kind: ir.Tile8x128, Scales: ir.Scales{Group: 64, DType: ir.BF16}}}
	require.ErrorContains(t, w.Pack(io.Discard, &b, 0), "tensor infs: error: element [0 0] is +Inf, which I4 cannot "+
		"hold; want finite weights of at most 3.")
}

func TestForeignBuffersAreRefused(t *testing.T) {
	specs := []checkpoint.Spec{{Name: "w", DType: checkpoint.F32, Shape: []int{6, 4}}}
	c, err := checkpoint.NewRandom(nil, 1, specs, nil)
	require.NoError(t, err)
	w := NewWeights(c, &ir.Graph{}, nil)
	buffer := func(shape []int, pieces ...ir.Piece) ir.Buffer {
		return ir.Buffer{Name: "b", Kind: ir.Weight, Shape: shape, Pieces: pieces}
	}
	modeltest.CheckRefusals(t, "testdata/pack_refusals.golden", []modeltest.Refusal{
		{Name: "no such tensor", Input: buffer([]int{6, 4}, ir.Piece{Key: "v"})},
		{Name: "bad key", Input: buffer([]int{6, 4}, ir.Piece{Key: "w{"})},
		{Name: "no pieces", Input: buffer([]int{6, 4})},
		{Name: "other columns", Input: buffer([]int{8, 3}, ir.Piece{Key: "w"})},
		{Name: "other rows", Input: buffer([]int{7, 4}, ir.Piece{Key: "w"})},
		{Name: "heads do not fit", Input: buffer([]int{6, 4}, ir.Piece{Key: "w", Chain: transform.Of(transform.Pairs,
			4)})},
		{Name: "odd without even", Input: buffer([]int{6, 4}, ir.Piece{Key: "w", Chain: transform.Of(transform.Odd)})},
		{Name: "dtype", Input: ir.Buffer{Name: "b", DType: ir.I8, Shape: []int{6, 4}, Pieces: []ir.Piece{{Key: "w"}}}},
		{Name: "layout", Input: ir.Buffer{Name: "b", Shape: []int{6, 4}, Layout: ir.Layout{Kind: ir.Word64},
			Pieces: []ir.Piece{{Key: "w"}}}},
		{Name: "even without odd", Input: buffer([]int{6, 4}, ir.Piece{Key: "w", Chain: transform.Of(transform.Even)})},
	}, func(v any) error {
		b := v.(ir.Buffer)
		return w.Pack(io.Discard, &b, 0)
	})
}

// Packing allocates a block of rows, however large the tensor and whatever is made of it.
func TestPackingMemoryIsBounded(t *testing.T) {
	const rows, cols = 4096, 512 // 8 MiB as float32
	c, err := checkpoint.NewRandom(nil, 1,
		[]checkpoint.Spec{{Name: "w", DType: checkpoint.BF16, Shape: []int{rows, cols}}}, nil)
	require.NoError(t, err)
	w := NewWeights(c, &ir.Graph{}, nil)
	for _, c := range []struct {
		layout ir.LayoutKind
		shape  []int
		chain  transform.Chain
	}{
		{ir.Tile8x32, []int{rows, cols}, nil},
		{ir.RowMajor, []int{rows, cols}, nil},
		{ir.Tile8x32, []int{rows / 2, cols}, transform.Of(transform.Rows, 32, 64, 64).
			Then(transform.Of(transform.Pairs, 32)...).Then(transform.Transform{Kind: transform.Plus, By: 1})},
		{ir.Tile8x32, []int{cols, rows}, transform.Of(transform.Transpose)},
	} {
		b := ir.Buffer{Name: "w", Kind: ir.Weight, DType: ir.BF16, Shape: c.shape, Layout: ir.Layout{Kind: c.layout},
			Pieces: []ir.Piece{{Key: "w", Chain: c.chain}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, w.Pack(io.Discard, &b, 0))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), fmt.Sprint(c))
	}
}

func BenchmarkPack(b *testing.B) {
	const rows, cols = 1024, 2048
	values := make([]byte, rows*cols*2)
	dir := modeltest.WriteModel(b, modeltest.TinyConfig, map[string]modeltest.Stored{"w": {DType: "BF16",
		Shape: []int{rows, cols}, Data: values}})
	c, err := checkpoint.Open(dir)
	require.NoError(b, err)
	defer c.Close()
	w := NewWeights(c, &ir.Graph{}, nil)
	buf := ir.Buffer{Name: "w", Kind: ir.Weight, DType: ir.BF16, Shape: []int{rows, cols},
		Layout: ir.Layout{Kind: ir.Tile8x32}, Pieces: []ir.Piece{{Key: "w"}}}
	b.SetBytes(int64(len(values)))
	for b.Loop() {
		require.NoError(b, w.Pack(io.Discard, &buf, 0))
	}
}
