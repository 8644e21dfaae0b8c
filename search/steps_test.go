package search

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// A gain that is too little for the best moves the basin, if it is seen in all of its interval.
func TestSteps(t *testing.T) {
	c, small := toyCampaign(knobs.Settings{}), Interval{0.993, 0.989, 0.997}
	for _, tt := range []struct {
		name           string
		ratio, worst   Interval
		rules          Rules
		rung           Rung
		accepted, best bool
	}{
		{"keeps", Interval{0.98, 0.97, 0.985}, Interval{0.98, 0.97, 0.985}, c.Rules, Final, true, true},
		{"a step", small, small, c.Rules, Final, true, false},
		{"too small", Interval{0.996, 0.995, 0.997}, Interval{0.996, 0.995, 0.997}, c.Rules, Final, false, false},
		{"not seen", Interval{0.993, 0.985, 1.001}, Interval{0.993, 0.985, 1.001}, c.Rules, Final, false, false},
		{"a position loses", small, Interval{1.012, 1.008, 1.016}, c.Rules, Final, false, false},
		{"an early rung", small, small, c.Rules, Race, false, false},
		{"twins too far apart", small, small, c.Rules, Final, false, false},
		{"rules without", small, small, Rules{MinGain: 0.01}, Final, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := toyCampaign(knobs.Settings{})
			c.Rules = tt.rules
			s := NewState(c)
			j := &Job{Role: RoleCandidate, Rung: tt.rung, Settings: knobs.Settings{"tiling.ring.pace": "600"},
				Against: s.local}
			v := toyVerdict(c, j)
			v.Ratio, v.At[0].Ratio = tt.ratio, tt.worst
			if tt.name == "twins too far apart" {
				v.Band = 0.05
			}
			c.Rules.Decide(v)
			accepted, best := s.Outcome(&Trial{Job: *j, Verdict: v})
			require.Equal(t, tt.accepted, accepted)
			require.Equal(t, tt.best, best)
		})
	}
}

// Predictions have an interval of their errors, which says nothing of a step.
func TestStepsByPredictions(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	v := &Verdict{Class: Pass, Rung: Final, Subject: Subject{Device: DeviceCost},
		Timing: &Timing{Ratio: Interval{0.993, 0.9, 1.1}, At: []At{{Ratio: Interval{0.993, 0.9, 1.1}}}}}
	c.Rules.Decide(v)
	require.True(t, c.Rules.steps(v))
	v.At[0].Ratio.Mean = 1.02
	require.False(t, c.Rules.steps(v), "a position loses")
}

// Gains that are each below what counts add up: the incumbent of the basin challenges the best as soon as they seem to
// be enough to be shown.
func TestStepsAddUp(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Proposers = []string{proposeLocal}
	good := knobs.Settings{"tiling.ring.pace": "600", "tiling.ring.run_ahead": "16", "tiling.warps.qkv": "4",
		"pipelining_depth": "5", "tiling.exchange.copies": "4"}
	search := func(rules Rules) (knobs.Settings, *State) {
		c.Rules = rules
		s := NewState(c)
		for {
			job, _, err := s.Next()
			require.NoError(t, err)
			if job == nil || len(s.trials) == 300 {
				if job = s.Confirm(); job == nil || job.Role == RoleConfirm {
					break
				}
			}
			v := toyVerdict(c, job)
			ratio := 1.0
			for path, value := range good {
				for _, of := range []struct {
					settings knobs.Settings
					times    float64
				}{{job.Settings, 0.993}, {job.Against, 1 / 0.993}} {
					if of.settings[path] == value {
						ratio *= of.times
					}
				}
			}
			if v.Timing != nil {
				v.Ratio = Interval{ratio, ratio - 0.002, ratio + 0.002}
				for i := range v.At {
					v.At[i].Ratio = v.Ratio
				}
				c.Rules.Decide(v)
			}
			tr := &Trial{Job: *job, Verdict: v}
			tr.Accepted, tr.Best = s.Outcome(tr)
			s.Apply(tr)
		}
		best, _ := s.Best()
		return best, s
	}
	rules := DefaultRules()
	best, s := search(rules)
	has := 0
	for path, value := range good {
		if best[path] == value {
			has++
		}
	}
	require.GreaterOrEqual(t, has, 4, "%v", best)
	early := 0 // challenges that are not the end of their basin
	for i, trial := range s.Trials() {
		if trial.Best {
			require.Equal(t, RoleChallenge, trial.Role, "each gain by itself is below what counts")
		}
		next := s.Trials()[min(i+1, len(s.Trials())-1)]
		if trial.Role == RoleChallenge && next.Role == RoleCandidate && next.Basin == trial.Basin {
			early++
		}
	}
	require.Positive(t, early, "as soon as they seem to be worth it")
	rules.Step = 0
	best, _ = search(rules)
	require.Empty(t, best)
}

// A proposer that is asked is asked, whatever another has drawn in vain before it.
func TestAskedProposersBeginWithNothing(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Space.Knobs = c.Space.Knobs[:1]
	c.Proposers = []string{proposeLocal, proposeCost}
	asked := 0
	for seed := range uint64(40) {
		c.Seed = seed
		s := NewState(c)
		start := &Job{Role: RoleStart, Rung: Final, Settings: c.Start, Against: c.Start}
		s.Apply(&Trial{Job: *start, Verdict: toyVerdict(c, start)})
		k := &c.Space.Knobs[0]
		for _, v := range k.Values { // nothing is left for local
			s.named[IDOf(k.with(c.Start, v))] = k.with(c.Start, v)
		}
		job, _, err := s.Next()
		require.NoError(t, err)
		if job != nil && job.Proposer == proposeCost {
			require.Nil(t, job.Settings)
			require.Empty(t, job.Why)
			asked++
		}
	}
	require.Positive(t, asked)
}
