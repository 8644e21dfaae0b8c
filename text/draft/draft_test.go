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
		{[]int{1, 2, 3, 1}, 7, nil}, // one id is not a match
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

// Eagerly a single id counts too, where it has occurred once before.
func TestNGramsEagerly(t *testing.T) {
	for _, c := range []struct {
		text []int
		n    int
		want []int
	}{
		{[]int{1}, 7, nil},
		{[]int{1, 1}, 7, []int{1}},
		{[]int{1, 2, 3, 4}, 7, nil},
		{[]int{1, 2, 3, 1}, 7, []int{2, 3, 1}},
		{[]int{1, 2, 3, 1}, 2, []int{2, 3}},
		{[]int{1, 2, 1, 3, 1}, 7, nil},
		{[]int{1, 2, 1, 3, 9, 1, 3}, 7, []int{9, 1, 3}}, // two ids count as ever
	} {
		require.Equal(t, c.want, NGrams{}.DraftEagerly(c.text, c.n), "%v", c.text)
	}
}

// What stands in front of a text is looked up too.
func TestAfter(t *testing.T) {
	ids := []int{1, 2, 3, 4, 5}
	d := After(ids, NGrams{})
	require.Equal(t, []int{4, 5}, d.Draft([]int{9, 2, 3}, 2))
	require.Nil(t, d.Draft([]int{9, 3, 2}, 2))
	require.Equal(t, []int{3, 4}, After(ids[:4], NGrams{}).Draft([]int{1, 2}, 2))
	require.Equal(t, []int{1, 2, 3, 4, 5}, ids)

	eager := d.(EagerDrafter)
	require.Equal(t, []int{4, 5}, eager.DraftEagerly([]int{9, 3}, 2), "a single id, which occurred once before")
	require.Nil(t, After(ids, onlyTwo{}).(EagerDrafter).DraftEagerly([]int{9, 3}, 2))
}

// onlyTwo asks for two ids that occurred before.
type onlyTwo struct{}

func (onlyTwo) Draft(text []int, n int) []int { return NGrams{}.Draft(text, n) }
