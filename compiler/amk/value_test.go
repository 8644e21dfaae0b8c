package amk_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
)

func TestFloatPrintsAsPython(t *testing.T) {
	for want, f := range map[amk.Number]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "1.0": 1, "10000.0": 1e4, "1000000.0": 1e6, "1e-06": 1e-6,
		"1e-05":  1e-5,
		"0.0001": 1e-4, "9.999e-05": 9.999e-5, "9999999999999998.0": 9999999999999998, "1e+16": 1e16,
		"1.5e+300":          1.5e300,
		"123456789012345.6": 123456789012345.6, "5e-324": 5e-324, "1.597": 1.597, "-2.5e-07": -2.5e-7,
		"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1),
	} {
		n := amk.Float(f)
		require.Equal(t, want, n)
		require.True(t, n.IsFloat())
		_, isInt := n.Int64()
		require.False(t, isInt)
		if !math.IsNaN(f) {
			require.Equal(t, math.Float64bits(f), math.Float64bits(n.Float64()))
		}
	}
}

func TestNumber(t *testing.T) {
	n, ok := amk.Int(-42).Int64()
	require.True(t, ok)
	require.EqualValues(t, -42, n)
	require.False(t, amk.Int(-42).IsFloat())
	require.Equal(t, -42.0, amk.Int(-42).Float64())

	big := amk.Number("123456789012345678901234567890")
	_, ok = big.Int64()
	require.False(t, ok)
	require.Equal(t, 123456789012345678901234567890.0, big.Float64())

	var zero amk.Number
	n, ok = zero.Int64()
	require.True(t, ok)
	require.Zero(t, n)
}

// More keys than the map searches one by one.
func TestOrderedMap(t *testing.T) {
	var m amk.OrderedMap[string, int]
	for i := range 100 {
		require.True(t, m.Set(fmt.Sprint(i), i))
	}
	require.False(t, m.Set("7", 700))
	require.Equal(t, 100, m.Len())
	_, ok := m.Get("100")
	require.False(t, ok)
	next := 0
	for k, v := range m.All() {
		require.Equal(t, fmt.Sprint(next), k, "a key that is set again keeps its place")
		want := next
		if next == 7 {
			want = 700
		}
		require.Equal(t, want, v)
		next++
	}
}

func TestObject(t *testing.T) {
	var o amk.Object
	o.Set("K", amk.Int(64))
	o.Set("eps", amk.Float(1e-6))
	o.Set("recipe", amk.String("swiglu"))
	k, ok := o.Int("K")
	require.True(t, ok)
	require.EqualValues(t, 64, k)
	f, ok := o.Float("K")
	require.True(t, ok)
	require.Equal(t, 64.0, f)
	for _, key := range []string{"eps", "recipe", "absent"} {
		_, ok := o.Int(key)
		require.False(t, ok, key)
	}
	_, ok = o.Float("recipe")
	require.False(t, ok)
}
