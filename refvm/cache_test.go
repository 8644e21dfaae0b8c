package refvm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A row becomes multiples of its largest magnitude over 127, as a BF16, to nearest with ties to even.
func TestToIntegers(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		row, want []float32
		scale     float32
	}{
		{[]float32{127, -63.5, 0.5, 1.5, -127}, []float32{127, -64, 0, 2, -127}, 1},
		{[]float32{254, 3, -5, 1}, []float32{127, 2, -2, 0}, 2},
		{[]float32{0, 0}, []float32{0, 0}, 0},
		{[]float32{0x1p-120, 0}, []float32{0, 0}, 0},
		{[]float32{0x1p-90, 0}, []float32{127, 0}, 0x1.02p-97},
		{[]float32{1, -1}, []float32{127, -127}, 0x1.02p-7}, // 1/127 rounded to BF16
		{[]float32{inf, 1}, []float32{0, 0}, inf},
	} {
		got := make([]float32, len(c.row))
		require.Equal(t, c.scale, toIntegers(got, c.row), "%v", c.row)
		require.Equal(t, c.want, got, "%v", c.row)
	}
	got := make([]float32, 2)
	scale := toIntegers(got, []float32{1, nan})
	require.True(t, scale != scale)
	require.Equal(t, []float32{0, 0}, got)
}

// Ops that do not know of scales are refused, and so are parts of rows.
func TestScaledRowsAreWhole(t *testing.T) {
	const header = `amk 2.0
buffer token IO_INPUT I32 [1] HBM rowmajor
buffer x ACTIVATION F16 [4] HBM rowmajor
buffer kv KV_CACHE I8 [1,4,2,4] HBM kvrows16
buffer next IO_OUTPUT I32 [1] HBM rowmajor
variant only pos 0..3
counter step counter gpu
stage t explicit
 task sm=0 a=0 b=1
`
	for line, whole := range map[string]bool{
		" kv[0,pos,0,0:4] = KV_APPEND(x[0:4])": true,
		" kv[0,pos,0,0:2] = KV_APPEND(x[0:2])": false,
		" kv[0,pos,0,0:4] = COPY(x[0:4])":      false,
		" x[0:4] = COPY(kv[0,0,0,0:4])":        false,
		" x[0:4] = ATTENTION_TILE(x[0:4], kv[0,0:pos,0,0:4], kv[0,0:pos,1,0:4], x[0:4], x[0:4]) head_dim=4 " +
			"n_heads=1 n_kv_heads=1 scale=1.0": true,
	} {
		p, err := ir.Load([]byte(header+line+"\n signal step\n"), "test.amk")
		require.NoError(t, err)
		_, err = NewSession(p, nil, Options{Round: Device})
		if whole {
			require.NoError(t, err, line)
		} else {
			require.ErrorContains(t, err, "touches rows of kv, which have scales", line)
		}
	}
}
