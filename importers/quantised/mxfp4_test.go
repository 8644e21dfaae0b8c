package quantised

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/ir/half"
)

// Every element of MXFP4 with every scale is what transformers makes of it, to the bit.
func TestMXFP4(t *testing.T) {
	const dir = "../../testdata/models/quantised/mxfp4"
	c, scheme := schemeOf(t, dir)
	require.True(t, scheme.OfExperts)
	m, d := scheme.Open(c, "m")
	require.Nil(t, d)
	require.Equal(t, Element{Type: "F4E2M1", Group: 32, Scale: checkpoint.E8M0}, m.Element)
	require.Equal(t, []int{255, 64}, []int{m.Rows(), m.Cols()})
	dequantised, err := checkpoint.OpenFile(dir + "/dequantised.safetensors")
	require.NoError(t, err)
	defer dequantised.Close()
	require.Len(t, dequantised.Tensors(), 1)
	w := dequantised.Tensors()[0]
	want, got := make([]float32, 255*64), make([]float32, 255*64)
	require.NoError(t, w.ReadF32(want, 0))
	require.NoError(t, m.NewReader().ReadF32(got, 0))
	distinct := map[uint32]bool{}
	for i, v := range want {
		require.Equal(t, math.Float32bits(v), math.Float32bits(half.RoundBF16(got[i])),
			"scale %d, column %d", i/64, i%64)
		distinct[math.Float32bits(v)] = true
	}
	require.Greater(t, len(distinct), 500)
	other, d := scheme.Open(c, "n")
	require.Nil(t, other)
	require.Nil(t, d)
}
