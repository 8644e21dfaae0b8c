package refvm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// An op on finished rows that is declared Pointwise makes each element of its result of that element of each operand
// alone: another value there changes no other one.
func TestPointwise(t *testing.T) {
	const n, buffers = 8, "buffer x IO_INPUT F32 [8] HBM rowmajor\nbuffer y IO_INPUT F32 [8] HBM rowmajor\n" +
		"buffer out ACTIVATION F32 [8] HBM rowmajor"
	tried := 0
	for _, spec := range ir.Ops {
		if spec == nil || spec.Finisher == nil || !spec.Pointwise {
			continue
		}
		tried++
		in, of := "x[0:8]", []string{"x"}
		if spec.Gated() {
			in, of = "x[0:8], y[0:8]", []string{"x", "y"}
		}
		text := "out[0:8] = " + spec.Name + "(" + in + ")"
		if args := spec.Finisher.Args; len(args) > 0 {
			text += " " + strings.Join(args, "=0.75 ") + "=0.75"
		}
		vm, err := New(unroll(t, parse(t, oneTask(buffers, text))), noise(1), Options{})
		require.NoError(t, err, spec.Name)
		result := func(changed string, at int) []float32 {
			for _, name := range []string{"x", "y"} {
				values := []float32{-1.5, 2.5, 0.25, -0.125, 3.5, 0.5, -2.25, 1.75}
				if name == changed {
					values[at] = 0.625
				}
				require.NoError(t, vm.Write(name, values))
			}
			require.NoError(t, vm.Step(0, -1, Order{}))
			got, err := vm.Read("out")
			require.NoError(t, err)
			return append([]float32{}, got...)
		}
		before := result("", 0)
		for _, operand := range of {
			for i := range n {
				after := result(operand, i)
				after[i] = before[i]
				require.Equal(t, before, after, "%s, element %d of %s", spec.Name, i, operand)
			}
		}
	}
	require.GreaterOrEqual(t, tried, 8)
}
