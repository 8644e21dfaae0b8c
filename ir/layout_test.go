package ir

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLayoutsAreInjective maps every element of oddly shaped buffers and demands that no two share a byte.
func TestLayoutsAreInjective(t *testing.T) {
	for _, c := range []struct {
		kind   LayoutKind
		dtypes []DType
		shapes [][]int
	}{
		{RowMajor, []DType{F32, BF16, I8}, [][]int{{1}, {17}, {3, 5}, {2, 3, 5, 7}}},
		{Tile8x32, []DType{F32, F16, BF16}, [][]int{{1, 1}, {8, 32}, {9, 33}, {23, 100}, {64, 31}}},
		{KVBlock16, []DType{BF16, F16, F32, I8},
			[][]int{{1, 1, 2, 1}, {2, 16, 2, 16}, {3, 33, 2, 24}, {1, 50, 2, 20}, {2, 15, 2, 64}, {3, 2, 17, 2, 24}}},
		{KVRows16, []DType{BF16, F32, I8}, [][]int{{1, 1, 2, 1}, {2, 16, 2, 16}, {3, 33, 2, 24}, {2, 15, 2, 64},
			{2, 3, 18, 2, 20}}},
		{Word32, []DType{BF16, F16}, [][]int{{1}, {33}, {3, 5}}},
		{Word64, []DType{F32, I32}, [][]int{{1}, {33}, {4, 2, 18}}},
	} {
		for _, dt := range c.dtypes {
			for _, shape := range c.shapes {
				t.Run(fmt.Sprint(c.kind, dt, shape), func(t *testing.T) {
					b := &Buffer{DType: dt, Shape: shape, Layout: Layout{Kind: c.kind}}
					require.Empty(t, b.layoutWants())
					size := max(dt.Bits()/8, map[LayoutKind]int{Word32: 4, Word64: 8}[c.kind])
					used := make([]bool, b.Bytes())
					for e := range b.Numel() {
						off := b.Offset(e)
						require.Zero(t, off%size)
						for k := off; k < off+size; k++ {
							require.False(t, used[k], "element %d at byte %d", e, k)
							used[k] = true
						}
					}
				})
			}
		}
	}
}

// Of a cache of integers, the last bytes of each block are left for a scale of 16 bits for K and V of each row.
func TestScaledRows(t *testing.T) {
	for _, kind := range []LayoutKind{KVBlock16, KVRows16} {
		b := &Buffer{DType: I8, Shape: []int{3, 33, 2, 24}, Layout: Layout{Kind: kind}}
		require.True(t, b.ScaledRows())
		require.Equal(t, F32, b.ValueType())
		block := State{Elements: 24}.Block(I8)
		require.Equal(t, 2*16*32+2*16*2, block)
		require.Equal(t, 3*3*block, b.Bytes())
		for e := range b.Numel() {
			require.Less(t, b.Offset(e)%block, 2*16*32)
		}
	}
	require.False(t, (&Buffer{DType: I8, Shape: []int{3, 33, 2, 24}}).ScaledRows())
	require.Equal(t, 2*16*32*2, State{Elements: 24}.Block(BF16))
}

func TestLayoutStrings(t *testing.T) {
	for kind := range layoutNames {
		if LayoutKind(kind) == Tile8x128 {
			continue // has scales, and no copies
		}
		for _, copies := range []int{0, 2, 17} {
			l := Layout{Kind: LayoutKind(kind), Copies: copies}
			back, err := ParseLayout(l.String())
			require.NoError(t, err)
			require.Equal(t, l, back)
		}
	}
	for _, s := range []Scales{{Group: 64, DType: BF16, Zeros: true}, {Group: 32, DType: F16},
		{Group: 128, DType: F32}, {Group: 32, DType: F16, Mins: true}, {Group: 16, DType: F16, Steps: true},
		{Group: 32, DType: F16, Mins: true, Steps: true}} {
		l := Layout{Kind: Tile8x128, Scales: s}
		back, err := ParseLayout(l.String())
		require.NoError(t, err)
		require.Equal(t, l, back)
	}
	for _, s := range []string{"", "x2", "word32x", "word32x1", "word32x-2", "word32x9999", "word32 x2", "tile8x128",
		"tile8x128.", "tile8x128.g64", "tile8x128.64.BF16", "tile8x128.g064.BF16", "tile8x128.g64.BF16.",
		"tile8x128.g64.BF16.zero", "tile8x128.g64.BF16.mins.steps", "tile8x128.g64.F16.mins.mins",
		"tile8x128.g-4.BF16", "tile8x128.g64.B16", "tile8x128x2"} {
		_, err := ParseLayout(s)
		require.Error(t, err, s)
	}
}
