package search

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// The first of a bracket is the incumbent with what has gained in the bracket before.
func TestCombinations(t *testing.T) {
	screened := func(accepted bool, proposers ...string) *State {
		c := toyCampaign(knobs.Settings{})
		c.Proposers = proposers
		s := NewState(c)
		apply := func(rung Rung, settings knobs.Settings) {
			j := &Job{N: len(s.trials), Role: RoleCandidate, Rung: rung, Region: "ring", Settings: settings,
				Against: s.local}
			tr := &Trial{Job: *j, Verdict: toyVerdict(c, j)}
			tr.Accepted, tr.Best = s.Outcome(tr)
			s.Apply(tr)
		}
		apply(Screen, knobs.Settings{"tiling.ring.pace": "600"})
		apply(Screen, knobs.Settings{"tiling.warps.qkv": "4"})
		apply(Screen, knobs.Settings{"tiling.loop.barrier": "1"})
		if accepted {
			apply(Final, knobs.Settings{"tiling.warps.qkv": "4"})
			require.Equal(t, knobs.Value("4"), s.local["tiling.warps.qkv"])
		}
		return s
	}
	both := knobs.Settings{"tiling.ring.pace": "600", "tiling.warps.qkv": "4"}
	for _, accepted := range []bool{false, true} {
		s := screened(accepted, proposeLocal, proposeEvolve)
		to, region, why := s.combined(1)
		require.Equal(t, both, to)
		require.NotEmpty(t, region)
		require.NotEmpty(t, why)
		to, _, _ = s.combined(0)
		require.Nil(t, to, "the bracket has not come to its end")
		s.named[IDOf(both)] = both
		to, _, _ = s.combined(1)
		require.Nil(t, to, "it was tried")
	}
	to, _, _ := screened(false, proposeLocal).combined(1)
	require.Nil(t, to, "without evolve nothing is crossed")
}

// A round has as many more as are refused.
func TestRefusalsAmong(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	s := NewState(c)
	require.Zero(t, s.refusalsAmong(9))
	for _, page := range []knobs.Value{"linear", "none", "none"} {
		j := &Job{N: len(s.trials), Role: RoleCandidate, Rung: Screen, Against: c.Start,
			Settings: knobs.Settings{"page_allocation": page}}
		s.Apply(&Trial{Job: *j, Verdict: toyVerdict(c, j)})
	}
	require.Equal(t, 3, s.refusalsAmong(9))
}
