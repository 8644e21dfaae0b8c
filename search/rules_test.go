package search

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// A campaign ends where its best is three times as fast as the defaults, whatever it began at.
func TestThreeTimesIsEnough(t *testing.T) {
	cold := toyCampaign(knobs.Settings{}).Space.Cold()
	best := knobs.Settings{"pipelining_depth": "5"}
	for name, c := range map[string]struct {
		start knobs.Settings
		score map[string]float64 // the logarithm of the time relative to the start
		want  string
	}{
		"from the defaults": {knobs.Settings{}, map[string]float64{IDOf(best): math.Log(1 / 3.01)},
			"the best is 3.01 times as fast as the defaults, and 3 times is enough"},
		"not yet": {knobs.Settings{}, map[string]float64{IDOf(best): math.Log(1 / 2.99)}, ""},
		"a cold start, of which that says little": {cold, map[string]float64{IDOf(best): math.Log(0.1)}, ""},
		"a cold start, and the defaults are known": {cold, map[string]float64{IDOf(best): math.Log(0.1),
			IDOf(knobs.Settings{}): math.Log(0.31)}, "the best is 3.10 times as fast as the defaults"},
	} {
		s := NewState(toyCampaign(c.start))
		s.forever = true // not even a search without an end goes on
		start := Job{Role: RoleStart, Rung: Final, Settings: c.start, Against: c.start}
		s.Apply(&Trial{Job: start, Verdict: toyVerdict(s.campaign, &start)})
		s.best = best
		for id, score := range c.score {
			s.score[id] = score
		}
		job, stop, err := s.Next()
		require.NoError(t, err)
		if c.want == "" {
			require.NotNil(t, job, name)
			continue
		}
		require.Nil(t, job, name)
		require.Contains(t, stop, c.want, name)
	}
}

// Simpler wins where the interval is that of a tie at every position, and nothing else was measured too.
func TestSimplerWinsOnlyATie(t *testing.T) {
	rules := DefaultRules()
	verdict := func(low, high, at, spread float64) *Verdict {
		v := &Verdict{Class: Pass, Rung: Final, Simpler: "4 pages in place of 5", Subject: Subject{Device: DeviceCUDA},
			Timing: &Timing{Ratio: Interval{Mean: (low + high) / 2, Low: low, High: high}, Band: 0.02, Spread: spread,
				At: []At{{Ratio: Interval{High: 1}}, {Ratio: Interval{High: at}}}}}
		rules.Decide(v)
		return v
	}
	require.Equal(t, Keep, verdict(0.995, 1.009, 1.009, 0.02).Decision)
	for why, v := range map[string]*Verdict{
		"may lose what counts":      verdict(0.995, 1.011, 1.009, 0.02),
		"may lose it at a position": verdict(0.995, 1.009, 1.011, 0.02),
		"is slower":                 verdict(1.001, 1.009, 1.009, 0.02),
		"is disturbed":              verdict(0.995, 1.009, 1.009, 0.05),
		"is no number":              verdict(math.NaN(), math.NaN(), 1, 0.02),
	} {
		require.Equal(t, Revert, v.Decision, why)
	}
	same := verdict(0.995, 1.009, 1.009, 0.02)
	same.Simpler = ""
	rules.Decide(same)
	require.Equal(t, Revert, same.Decision)
	require.NoError(t, rules.made(verdict(0.995, 1.009, 1.009, 0.02)), "a campaign is verified by the same rule")
}
