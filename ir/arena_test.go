package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// family is a buffer of n F32 elements for each index.
func family(name string, kind BufferKind, n, first, count, step int) Buffer {
	return Buffer{Name: name, First: first, Count: count, Step: step, Kind: kind, DType: F32, Shape: []int{n}}
}

// Families with the same indices are side by side, member by member, however far apart the indices are; plain buffers
// after.
func TestArenaOrder(t *testing.T) {
	weight := func(name string, first, count, step int) Buffer { return family(name, Weight, 1, first, count, step) }
	p := &Program{Buffers: []Buffer{weight("plain", 0, 0, 0), weight("far{i}", 1<<50, 2, 0), weight("a{i}", 0, 2, 0),
		weight("even{i}", 0, 2, 2), weight("b{i}", 1, 2, 0), weight("last", 0, 0, 0), weight("c{i}", 0, 2, 1),
		weight("even{i}.y", 0, 2, 2)}}
	places, size := WeightArena(p)
	var names []string
	for i, pl := range places {
		names = append(names, pl.Name)
		require.Equal(t, i*ArenaAlign, pl.Offset)
	}
	require.Equal(t, []string{"far1125899906842624", "far1125899906842625", "a00", "c00", "a01", "c01",
		"even00", "even00.y", "even02", "even02.y", "b01", "b02", "plain", "last"}, names)
	require.Equal(t, len(names)*ArenaAlign, size)
}

// Whatever indices families have, each is at one stride, and no two buffers share a byte.
func TestArenaIsLinear(t *testing.T) {
	for _, kind := range []BufferKind{Weight, KVCache} {
		p := &Program{Buffers: []Buffer{
			family("a{i}", kind, 100, 0, 4, 0), family("skipped{i}", Activation, 9, 0, 4, 0),
			family("one", kind, 3, 0, 0, 0),
			family("late{i}", kind, 65, 1, 3, 0), family("even{i}", kind, 64, 0, 2, 2),
			family("b{i}", kind, 1, 0, 4, 0),
			family("odd{i}", kind, 200, 1, 2, 2), family("even{i}.b", kind, 7, 0, 2, 2),
			family("single{i}", kind, 5, 7, 1, 0),
		}}
		place := WeightArena
		if kind == KVCache {
			place = CacheArena
		}
		places, size := place(p)
		end, members := 0, make([][]Placement, len(p.Buffers))
		for _, pl := range places {
			require.GreaterOrEqual(t, pl.Offset, end)
			require.Zero(t, pl.Offset%ArenaAlign)
			require.Equal(t, p.Buffers[pl.Buffer].Bytes(), pl.Bytes)
			end = pl.Offset + pl.Bytes
			members[pl.Buffer] = append(members[pl.Buffer], pl)
		}
		require.LessOrEqual(t, end, size)
		for n, list := range members {
			b := &p.Buffers[n]
			if b.Kind != kind {
				require.Empty(t, list)
				continue
			}
			require.Len(t, list, max(1, b.Count), b.Name)
			for k, pl := range list {
				require.Equal(t, b.Index(k), pl.Index, b.Name)
				require.Equal(t, k*(list[min(1, len(list)-1)].Offset-list[0].Offset), pl.Offset-list[0].Offset, b.Name)
			}
		}
	}
}
