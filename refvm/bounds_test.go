package refvm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// columns is a program of one task that multiplies two columns of n elements, which yields n² of them.
func columns(n int) *ir.Flat {
	whole := func(name string) ir.Operand {
		return ir.Operand{Buf: name, Dims: []ir.Range{{Lo: ir.Int(0), Hi: ir.Int(n)}, {Lo: ir.Int(0), Hi: ir.Int(1)}}}
	}
	f := &ir.Flat{Name: "columns"}
	for _, name := range []string{"x", "y"} {
		f.Buffers = append(f.Buffers, ir.Buffer{Name: name, Kind: ir.Input, DType: ir.F32, Shape: []int{n, 1}})
	}
	f.Tasks = []ir.Task{{Name: "t", SM: -1, Signal: -1, Ops: []ir.FlatOp{{Op: ir.Op{Code: ir.GEMM,
		In: []ir.Operand{whole("x"), whole("y")}, Out: []ir.Operand{{Buf: "%z"}}}, InBuf: []int{0, 1},
		OutBuf: []int{-1}}}}}
	return f
}

// A pass that is stopped ends in the middle of an op, and one that needs more than it may ends before it takes it.
func TestBounds(t *testing.T) {
	run := func(n int, b Bounds) error {
		vm, err := New(columns(n), nil, Options{Workers: 1, Record: true, Bounds: b})
		require.NoError(t, err)
		return vm.Step(0, 0, Order{Kind: InOrder})
	}
	stop := make(chan struct{})
	require.NoError(t, run(2000, Bounds{Stop: stop, Scratch: 4_000_000, Touches: 2}))
	var bound *BoundError
	require.ErrorAs(t, run(2000, Bounds{Scratch: 3_999_999}), &bound)
	require.Contains(t, bound.What, "GEMM_TILE")
	require.ErrorAs(t, run(2000, Bounds{Touches: 1}), &bound)
	require.ErrorAs(t, run(1<<24, Bounds{Scratch: 1 << 26}), &bound, "no memory holds that")
	close(stop)
	require.ErrorIs(t, run(2000, Bounds{Stop: stop}), ErrStopped)
	require.NoError(t, run(2, Bounds{Stop: stop}), "it is done before it looks")
}
