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
		delete(s.named, IDOf(both))
		s.Apply(&Trial{Job: Job{Proposer: proposeCombine, Bracket: 1,
			Settings: knobs.Settings{"tiling.warps.qkv": "2"}}})
		to, _, _ = s.combined(1)
		require.Nil(t, to, "the bracket has one")
		to, _, _ = s.combined(2)
		require.Equal(t, both, to)
	}
	to, _, _ := screened(false, proposeLocal).combined(1)
	require.Nil(t, to, "without evolve nothing is crossed")
}

// A round has as many more as are refused of those before.
func TestRefusalsAmong(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	s := NewState(c)
	start := &Job{Role: RoleStart, Rung: Final, Settings: c.Start, Against: c.Start}
	s.Apply(&Trial{Job: *start, Verdict: toyVerdict(c, start)})
	require.Zero(t, s.refusalsAmong(9))
	planned := func() int {
		jobs, _, err := s.round(t.Context(), (func(*State) Asker)(nil), 100)
		require.NoError(t, err)
		return len(jobs)
	}
	require.Equal(t, c.Rules.Bracket, planned())
	for _, page := range []knobs.Value{"linear", "none", "none"} {
		j := &Job{N: len(s.trials), Role: RoleCandidate, Rung: Screen, Against: c.Start,
			Settings: knobs.Settings{"page_allocation": page, "tiling.ring.pace": "600"}}
		s.Apply(&Trial{Job: *j, Verdict: toyVerdict(c, j)})
	}
	require.Equal(t, 4, s.refusalsAmong(9), "half as many as are not refused")
	require.Equal(t, c.Rules.Bracket-2+s.refusalsAmong(c.Rules.Bracket-2), planned())
}
