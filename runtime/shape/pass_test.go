package shape

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two passes are equal that take the same, and files state both numbers.
func TestPassOfOne(t *testing.T) {
	require.Equal(t, Pass{}, PassOf(1, 1))
	require.Equal(t, Pass{Rows: 4}, PassOf(1, 4))
	require.Equal(t, Pass{Sequences: 7}, PassOf(7, 1))
	require.Equal(t, Pass{Sequences: 1, Rows: 4}, Pass{Rows: 4}.Written())
	require.Equal(t, Pass{Sequences: 4, Rows: 8}, Pass{}.Most(Pass{Rows: 8}, Pass{Sequences: 4, Rows: 2}))
	require.Equal(t, 1, Pass{}.NumTokens())
	require.Equal(t, 28, PassOf(7, 4).NumTokens())
	require.Equal(t, math.MaxInt, Pass{math.MaxInt, 2}.NumTokens())
}

// Each pass that has a kernel has a directory of its own.
func TestDirectories(t *testing.T) {
	dirs, kernels := map[string]bool{}, 0
	for sequences := range 10 {
		for rows := range 10 {
			p := Pass{sequences, rows}
			tokens := max(1, sequences) * max(1, rows)
			require.Equal(t, 1 < tokens && tokens <= MaxTokens, p.HasKernel(), "%v", p)
			require.Equal(t, PassOf(sequences, rows).Dir(), p.Dir())
			if p.HasKernel() && p == p.Written() {
				dirs[p.Dir()], kernels = true, kernels+1
			}
		}
	}
	require.Len(t, dirs, kernels)
	require.False(t, Pass{Sequences: -1, Rows: 4}.HasKernel())
	for p, want := range map[Pass][2]string{{}: {"", "1 token"}, {Rows: 2}: {"rows2", "2 rows"},
		{Sequences: 4}:          {"sequences4", "4 sequences"},
		{Sequences: 4, Rows: 2}: {"sequences4rows2", "2 rows of each of 4 sequences"}} {
		require.Equal(t, want, [2]string{p.Dir(), p.String()})
	}
}

// Kernels of a build are in one order: by their rows, then of sequences, then of rows of as many.
func TestFollows(t *testing.T) {
	order := []Pass{{}, {Rows: 2}, {Rows: 8}, {Sequences: 4}, {Sequences: 4, Rows: 2}}
	for i, before := range order {
		for k, p := range order {
			next := k == i+1 || k > i && k <= 3
			require.Equal(t, next, p.Follows(before), "%v after %v", p, before)
		}
	}
	for _, bad := range [][2]Pass{{{Rows: 2}, {Sequences: 4, Rows: 2}}, {{Sequences: 4}, {Sequences: 2, Rows: 2}},
		{{Sequences: 4, Rows: 2}, {Sequences: 4, Rows: 3}}} {
		require.False(t, bad[1].Follows(bad[0]), "%v", bad)
	}
}
