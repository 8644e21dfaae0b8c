package search

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
	"amkc/search/prior"
)

// believed is what a cost model might take a toy's time to be: wrong about two knobs.
func believed(s knobs.Settings) float64 {
	us := toyTime(s)
	if s["tiling.exchange.copies"] == "4" {
		us *= 0.9
	}
	if s["tiling.ring.run_ahead"] == "16" {
		us *= 0.95
	}
	return us
}

// measured is a toy's verdict with what was believed of it.
func measured(c *Campaign, j *Job) *Verdict {
	v := toyVerdict(c, j)
	if v.Timing == nil {
		return v
	}
	for i := range v.At {
		v.At[i].Predicted = &Predicted{Candidate: believed(j.Settings), Baseline: believed(j.Against)}
	}
	toyKey.Sign(v)
	return v
}

func TestResidualsAreOfTheCampaignsOwnTrials(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	s := NewState(c)
	require.False(t, s.residuals(&prior.Learnt{}).Used, "nothing is known")
	apply := func(settings knobs.Settings) {
		j := Job{N: len(s.trials), Role: RoleCandidate, Rung: Screen, Settings: settings, Against: s.local}
		if len(s.trials) == 0 {
			j.Role, j.Rung = RoleStart, Final
		}
		s.Apply(&Trial{Job: j, Verdict: measured(c, &j)})
	}
	apply(c.Start)
	for _, depth := range []knobs.Value{"2", "4", "5"} {
		for _, copies := range []knobs.Value{"1", "2", "4"} {
			for _, ahead := range []knobs.Value{"8", "16"} {
				k := c.Space.Knob
				to := k("pipelining_depth").with(knobs.Settings{}, depth)
				to = k("tiling.exchange.copies").with(to, copies)
				apply(k("tiling.ring.run_ahead").with(to, ahead))
			}
		}
	}
	own := s.residuals(&prior.Learnt{})
	require.True(t, own.Used)
	require.Less(t, own.Error, own.Without/3)
	wrong := knobs.Settings{"tiling.exchange.copies": "4", "tiling.ring.pace": "600"}
	require.InDelta(t, -math.Log(0.9), own.At(s.apart(wrong, c.Start)), 0.02, "whatever other knobs are set to")
	require.Zero(t, own.At(s.apart(c.Start, c.Start)))
	require.Equal(t, map[string]float64{"tiling.exchange.copies=4": 1, "tiling.exchange.copies=2": -1},
		s.apart(knobs.Settings{"tiling.exchange.copies": "4"}, knobs.Settings{}), "a default is a value")

	// A proposal is expected to take what it takes, and not what was believed.
	describe := func(candidate, baseline knobs.Settings) ([]Predicted, error) {
		return []Predicted{{Candidate: believed(candidate), Baseline: believed(baseline)}}, nil
	}
	job := &Job{N: 40, Against: c.Start, Proposer: proposeCost}
	p, err := NewState(c).askGuide(t.Context(), job, describe)
	require.NoError(t, err)
	require.Greater(t, toyTime(p.Settings)/believed(p.Settings), 1.04, "what is believed leads to %v", p.Settings)
	p, err = s.askGuide(t.Context(), job, describe)
	require.NoError(t, err)
	_, text, _ := strings.Cut(p.Why, "expected to take ")
	expected, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.InEpsilon(t, toyTime(p.Settings)/toyTime(c.Start), expected, 0.02)
}
