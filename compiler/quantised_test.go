package compiler

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/format"
)

// The blocks of a quantised checkpoint's matrices mean what its files mean, to the bit, in a build of any dtype:
// nothing is quantised again. What is packed from the files is what is planned without them.
func TestQuantisedCheckpointsArePackedAsTheyAre(t *testing.T) {
	dirs, err := os.ReadDir(filepath.Join(root, "models", "quantised", "models"))
	require.NoError(t, err)
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			options := Options{Model: filepath.Join(root, "models", "quantised", "models", dir.Name()), Name: "m",
				Target: ir.FindTarget("h200")}
			exact, half := ir.F32, ir.F16
			options.DType = &exact
			plain, err := RunPasses(options)
			require.NoError(t, err)
			defer plain.Close()
			options.DType = &half
			l, err := RunPasses(options)
			require.NoError(t, err)
			defer l.Close()
			options.ConfigOnly = true
			planned, err := RunPasses(options)
			require.NoError(t, err)
			for k, b := range planned.Program.Buffers {
				require.Equal(t, b.DType, l.Program.Buffers[k].DType, b.Name)
				require.Equal(t, b.Layout, l.Program.Buffers[k].Layout, b.Name)
			}

			packed := 0
			for k := range l.Program.Buffers {
				b := &l.Program.Buffers[k]
				as, quantised := b.Format().(format.Quantised)
				if !quantised {
					continue
				}
				for i := range max(1, b.Count) {
					want, err := plain.Weights.Floats(&plain.Program.Buffers[k], i)
					require.NoError(t, err)
					var out bytes.Buffer
					require.NoError(t, l.Weights.Pack(&out, b, i))
					rows, cols := b.Matrix()
					require.Equal(t, as.Bytes(rows, cols), out.Len())
					got := make([]float32, rows*cols)
					as.Unpack(got, out.Bytes(), cols)
					require.Equal(t, want, got, b.Name)
					packed++
				}
			}
			require.NotZero(t, packed)
		})
	}
}
