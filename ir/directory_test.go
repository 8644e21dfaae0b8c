package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// listed is a program with a plain buffer, a family by two, and a group; what stands between them is malformed.
func listed() *ir.Program {
	return &ir.Program{
		Buffers: []ir.Buffer{
			{Name: "a", Shape: []int{1}},
			{Name: "none{i}", Shape: []int{1}},         // of no members
			{Name: "plain", Count: 3, Shape: []int{1}}, // a count without an index
			{Name: "L{i}.x", First: 1, Count: 3, Step: 2, Shape: []int{1}},
			{Name: "a", Shape: []int{1}}, // again
			{Name: "b", Shape: []int{1}},
		},
		Groups: []ir.Group{{Name: "g{i}", First: 4, Members: []string{"b", "L03.x", "gone", "b"}}},
	}
}

// Names stand for members, in every iteration, and what Check would refuse for none.
func TestDirectory(t *testing.T) {
	d := ir.BufferDirectory(listed())
	var names []string
	for n, m := range d.Members() {
		require.Equal(t, n, m.Number)
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"a", "L01.x", "L03.x", "L05.x", "b"}, names)
	for _, c := range []struct {
		name     string
		i        int
		declared int
		k        int
		member   string
	}{
		{"a", 7, 0, 0, "a"}, {"L{i}.x", 3, 3, 1, "L03.x"}, {"L{i+2}.x", 3, 3, 2, "L05.x"}, {"L01.x", 9, 3, 0, "L01.x"},
		{"b", 0, 5, 0, "b"}, {"g{i}", 4, 5, 0, "b"}, {"g{i}", 5, 3, 1, "L03.x"}, {"g07", 0, 5, 0, "b"},
	} {
		m, err := d.At(c.name, c.i)
		require.NoError(t, err)
		require.Equal(t, []any{c.declared, c.k, c.member}, []any{m.Declared, m.K, m.Name}, c.name)
	}
	for name, want := range map[string]string{
		"L{i}.x": "buffer L02.x is not defined", "plain": "buffer plain is not defined",
		"none{i}": "buffer none02 is not defined", "g06": "buffer g06 is not defined",
		"{j}": "want {i}, {i+N} or {i-N}"} {
		_, err := d.At(name, 2)
		require.ErrorContains(t, err, want)
	}
	loop := &ir.Loop{First: 1, Count: 2, Step: 2}
	ms, err := d.In("L{i+2}.x", loop)
	require.NoError(t, err)
	require.Len(t, ms, 2)
	require.Equal(t, "L05.x", ms[1].Name)
	ms, err = d.In("a", loop)
	require.NoError(t, err)
	require.Len(t, ms, 1, "one for all iterations")
	_, err = d.In("L{i+4}.x", loop)
	require.ErrorContains(t, err, "buffer L07.x is not defined")

	d.Add(&ir.Buffer{Name: "late{i}", Count: 2})
	m, err := d.At("late{i}", 1)
	require.NoError(t, err)
	require.Equal(t, ir.Member{Name: "late01", Number: 6, Declared: 6, K: 1}, m)
}
