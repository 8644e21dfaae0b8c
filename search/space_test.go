package search

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// A usual value is stated where a knob that the default follows is: the default may be another one there.
func TestDefaultsThatFollow(t *testing.T) {
	pace := &Knob{Path: "pace", Default: "800", Follows: []string{"stock"}}
	free := &Knob{Path: "pace", Default: "800"}
	alone, beside := knobs.Settings{"pace": "600"}, knobs.Settings{"pace": "600", "stock": "4"}
	require.Equal(t, knobs.Settings{}, pace.with(alone, "800"))
	require.Equal(t, knobs.Settings{"pace": "800", "stock": "4"}, pace.with(beside, "800"))
	require.Equal(t, knobs.Settings{"stock": "4"}, free.with(beside, "800"))
	require.Equal(t, knobs.Settings{"pace": "700"}, pace.with(nil, "700"))

	// What is taken from others is taken as they state it, or not at all.
	require.Equal(t, knobs.Settings{"stock": "4"}, pace.as(beside, nil))
	require.Equal(t, knobs.Settings{"pace": "800", "stock": "4"}, pace.as(beside, knobs.Settings{"pace": "800"}))
	require.Equal(t, knobs.Settings{"pace": "600", "stock": "4"}, beside, "nothing is changed in place")
}

// A search of a part varies that part, by regions and by knobs.
func TestOnly(t *testing.T) {
	paths := func(names ...string) (out []string) {
		s, err := toySpace().Only(names)
		require.NoError(t, err)
		for _, k := range s.Knobs {
			out = append(out, k.Path)
		}
		return out
	}
	require.Equal(t, []string{"pipelining_depth", "tiling.ring.pace", "tiling.ring.run_ahead", "tiling.loop.barrier"},
		paths("ring", "tiling.loop.barrier"))
	_, err := toySpace().Only([]string{"rings"})
	require.ErrorContains(t, err, `"rings" is neither a region nor a knob that is varied here; did you mean ring`)
	c := toyCampaign(knobs.Settings{})
	c.Only = []string{"ring"}
	c.Space, err = c.Space.Only(c.Only)
	require.NoError(t, err)
	j, _ := ran(t, c, 40)
	for _, trial := range j.State.Trials() {
		for path := range trial.Settings {
			require.Equal(t, "ring", c.Space.Knob(path).Region)
		}
	}
	require.Positive(t, j.State.Soundness().Accepted)
}
