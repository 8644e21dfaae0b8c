package simulate

import (
	"testing"

	"amkc/ir"

	"github.com/stretchr/testify/require"
)

// What is known of an op is not taken for one whose parameter has the same two numbers and means the other.
func TestOperandsOfOtherParameters(t *testing.T) {
	capped := func(p ir.Param) *ir.Flat {
		buffer := func(name string, kind ir.BufferKind) ir.Buffer {
			return ir.Buffer{Name: name, Kind: kind, DType: ir.F32, Shape: []int{4}}
		}
		view := func(name string) []ir.Operand {
			return []ir.Operand{{Buf: name, Dims: []ir.Range{ir.Span(ir.Int(0), ir.Int(4))}}}
		}
		return &ir.Flat{Name: "capped", Buffers: []ir.Buffer{buffer("x", ir.Input), buffer("y", ir.Activation)},
			Tasks: []ir.Task{{Name: "only", SM: -1, Signal: -1, Ops: []ir.FlatOp{{
				Op:    ir.Op{Code: ir.SoftCap, Out: view("y"), In: view("x"), Params: []ir.Param{p}},
				InBuf: []int{0}, OutBuf: []int{1}}}}}}
	}
	fp := NewFootprints()
	none, half := ir.Param{Key: "cap", Float: 0.5, Int: ir.Int(0)}, ir.FloatParam("cap", 0.5)
	fit, why := Operands(capped(none), fp, Effort{})
	require.Equal(t, Misfits, fit, why)
	fit, why = Operands(capped(half), fp, Effort{})
	require.Equal(t, Fits, fit, why)
}
