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

// A campaign that was begun before a space said what defaults follow goes on, by the space that it has.
func TestSpaceOfBefore(t *testing.T) {
	before, now := toyCampaign(knobs.Settings{}), toyCampaign(knobs.Settings{})
	now.Space.Knobs[0].Follows = []string{now.Space.Knobs[1].Path}
	now.Space.Seal()
	require.Equal(t, before.Space.Digest, now.Space.Digest)
	require.NoError(t, now.check("campaign.json"))
	require.NoError(t, before.Same(now, "dir"))
	require.NotEmpty(t, now.Space.Knobs[0].Follows)
	require.ErrorContains(t, now.Same(before, "dir"), "another space")
}
