package draft

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNGrams(t *testing.T) {
	for _, c := range []struct {
		text []int
		n    int
		want []int
	}{
		{[]int{1}, 7, nil},
		{[]int{1, 2, 3, 4}, 7, nil},
		{[]int{1, 2, 3, 1}, 7, nil}, // one id is no match
		{[]int{1, 2, 3, 4, 1, 2}, 7, []int{3, 4, 1, 2}},
		{[]int{1, 2, 3, 4, 1, 2}, 2, []int{3, 4}},
		{[]int{1, 2, 8, 1, 2, 9, 1, 2}, 1, []int{9}},          // the last of two
		{[]int{5, 1, 2, 8, 1, 2, 9, 5, 1, 2}, 1, []int{8}},    // but a longer one counts
		{[]int{7, 7, 7, 7}, 3, []int{7}},                      // a match may overlap the end
		{[]int{1, 2, 3, 1, 2, 3, 1, 2, 3}, 5, []int{1, 2, 3}}, // as in a text that repeats
	} {
		require.Equal(t, c.want, NGrams{}.Draft(c.text, c.n), "%v", c.text)
	}
}

// What stands in front of a text is looked up too.
func TestBehind(t *testing.T) {
	ids := []int{1, 2, 3, 4, 5}
	d := Behind(ids, NGrams{})
	require.Equal(t, []int{4, 5}, d.Draft([]int{9, 2, 3}, 2))
	require.Nil(t, d.Draft([]int{9, 3, 2}, 2))
	require.Equal(t, []int{3, 4}, Behind(ids[:4], NGrams{}).Draft([]int{1, 2}, 2))
	require.Equal(t, []int{1, 2, 3, 4, 5}, ids)
}

// Passes without an accepted draft come after longer and longer pauses, and the first with one ends that.
func TestPace(t *testing.T) {
	var p Pace
	for _, pause := range []int{2, 4, 8, 16, 32, 32} {
		require.True(t, p.Due())
		p.Verified(0)
		require.Equal(t, pause, p.Pause())
		p.Decoded(pause - 1)
		require.False(t, p.Due())
		p.Decoded(1)
	}
	p.Verified(3)
	require.True(t, p.Due())
	p.Verified(0)
	require.Equal(t, 2, p.Pause())
}
