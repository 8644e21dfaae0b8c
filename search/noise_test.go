package search

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/knobs"
)

// drawn makes samples of builds whose true times are given: each opening moves a build's time by up to placement, each
// round by up to noise.
func drawn(r *rand.Rand, candidate, baseline float64, positions, openings int, placement, noise float64) [][]Sample {
	out := make([][]Sample, positions)
	for i := range out {
		for range openings {
			one := func(us float64) []float64 {
				us *= 1 + placement*(2*r.Float64()-1)
				return []float64{us * (1 + noise*r.Float64()), us * (1 + noise*r.Float64())}
			}
			out[i] = append(out[i], Sample{one(candidate), one(baseline), one(baseline)})
		}
	}
	return out
}

// Over many campaigns' worth of null results, hardly any is kept; a gain beyond the noise usually is.
func TestNoiseIsNotKept(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rules := DefaultRules()
	covered := 0
	kept := func(ratio float64) (n int) {
		covered = 0
		for range 2000 {
			v := &Verdict{Class: Pass, Rung: Final, Subject: Subject{Device: DeviceCUDA}, Timing: &Timing{}}
			for samples, more := drawn(r, 100*ratio, 100, 2, 6, 0.01, 0.002), true; ; more = false {
				c := Compare(samples)
				v.Ratio, v.Band, v.Spread, v.At = c.All, c.Band, c.Spread, nil
				for _, i := range c.At {
					v.At = append(v.At, At{Ratio: i})
				}
				if !more || !rules.Undecided(v) {
					break
				}
				for i, again := range drawn(r, 100*ratio, 100, 2, 6, 0.01, 0.002) {
					samples[i] = append(samples[i], again...)
				}
			}
			if rules.Decide(v); v.Decision == Keep {
				n++
			}
			if v.Ratio.Low <= ratio && ratio <= v.Ratio.High {
				covered++
			}
		}
		return n
	}
	require.Zero(t, kept(1), "of 2000 builds that are alike")
	require.LessOrEqual(t, kept(0.995), 2, "half of what counts")
	require.LessOrEqual(t, kept(0.99), 100, "no more than what counts: as often as an interval is off, with two looks")
	require.Greater(t, kept(0.98), 1900, "a gain of 2 %")
	kept(0.985)
	require.InDelta(t, 0.94, float64(covered)/2000, 0.01, "intervals do not allow for the second look")
}

// More openings are asked for where they may lead to another decision.
func TestUndecided(t *testing.T) {
	rules, seems := DefaultRules(), Interval{.985, .975, .995}
	for name, c := range map[string]struct {
		ratio, at Interval
		spread    float64
		want      bool
	}{
		"seems to gain":             {seems, seems, 0, true},
		"shown to gain":             {Interval{.98, .975, .985}, seems, 0, false},
		"too little":                {Interval{.995, .98, 1.01}, seems, 0, false},
		"a position seems to lose":  {seems, Interval{1.02, 1, 1.04}, 0, true},
		"a position is shown to":    {seems, Interval{1.02, 1.015, 1.025}, 0, false},
		"something else is running": {seems, seems, .05, false},
	} {
		v := &Verdict{Class: Pass, Rung: Final, Subject: Subject{Device: DeviceCUDA},
			Timing: &Timing{Ratio: c.ratio, Spread: c.spread, At: []At{{Ratio: c.at}}}}
		require.Equal(t, c.want, rules.Undecided(v), name)
		require.Empty(t, v.Decision, "nothing is decided by asking")
		require.Zero(t, v.Threshold)
	}
}

// A true ratio lies in its interval about as often as the interval says.
func TestIntervalsCover(t *testing.T) {
	r, covered := rand.New(rand.NewPCG(3, 4)), 0
	for range 2000 {
		all := Compare(drawn(r, 98, 100, 1, 4, 0.005, 0)).All
		if all.Low <= 0.98 && 0.98 <= all.High {
			covered++
		}
	}
	require.InDelta(t, 0.95, float64(covered)/2000, 0.02)
}

func TestCompare(t *testing.T) {
	c := Compare([][]Sample{
		{{[]float64{90}, []float64{100}, []float64{100}}, {[]float64{90}, []float64{100}, []float64{102}}},
		{{[]float64{100}, []float64{100}, []float64{100}}, {[]float64{100}, []float64{100}, []float64{100}}},
	})
	require.InDelta(t, 0.9/math.Pow(1.02, 0.25), c.At[0].Mean, 1e-12)
	require.Equal(t, Interval{1, 1, 1}, c.At[1])
	require.InDelta(t, math.Sqrt(c.At[0].Mean), c.All.Mean, 1e-12)
	require.InDelta(t, 0.02, c.Spread, 1e-12)
	require.InDelta(t, interval([]float64{0, math.Log(1.02)}).High-1, c.Band, 1e-12, "at the first position")
	require.Less(t, c.All.Low, c.All.Mean)
	slow := []Sample{{[]float64{1}, []float64{102}, []float64{100}}, {[]float64{1}, []float64{102}, []float64{100}}}
	require.InDelta(t, 1-1/1.02, Compare([][]Sample{slow}).Band, 1e-12, "a twin that is faster")
	c = Compare([][]Sample{{{[]float64{50}, []float64{100}, []float64{100}}}})
	require.InDelta(t, 0.5, c.All.Mean, 1e-12)
	require.Equal(t, Interval{c.All.Mean, 0, math.MaxFloat64}, c.All, "a single opening has no interval")
	c = Compare([][]Sample{{{Candidate: []float64{50}, Baseline: []float64{100}}}})
	require.InDelta(t, 0.5, c.All.Mean, 1e-12, "without a twin")
	require.Zero(t, c.Band+c.Spread)
}

func TestDecisions(t *testing.T) {
	rules := DefaultRules()
	interval := func(low, mean, high float64) Interval { return Interval{mean, low, high} }
	for name, c := range map[string]struct {
		device string
		rung   Rung
		ratio  Interval
		at     Interval
		band   float64
		want   Decision
	}{
		"faster":                    {DeviceCUDA, Final, interval(.95, .96, .97), interval(.95, .96, .97), .003, Keep},
		"not beyond 1 %":            {DeviceCUDA, Final, interval(.97, .98, .991), interval(.9, .9, .9), .003, Revert},
		"not beyond the twins":      {DeviceCUDA, Final, interval(.95, .96, .97), interval(.9, .9, .9), .04, Revert},
		"worse at a position":       {DeviceCUDA, Final, interval(.9, .9, .9), interval(1, 1.01, 1.02), .003, Revert},
		"within the twins there":    {DeviceCUDA, Final, interval(.9, .9, .9), interval(1, 1.01, 1.02), .03, Keep},
		"twins too far apart":       {DeviceCUDA, Final, interval(.5, .5, .5), interval(.5, .5, .5), .041, Revert},
		"no number for a band":      {DeviceCUDA, Final, interval(.5, .5, .5), interval(1, 1, 1), math.NaN(), Revert},
		"no number for a ratio":     {DeviceCUDA, Final, interval(.5, .5, math.NaN()), interval(1, 1, 1), 0, Revert},
		"none at a position":        {DeviceCUDA, Final, interval(.5, .5, .5), interval(.5, .5, math.NaN()), 0, Revert},
		"not at the last rung":      {DeviceCUDA, Screen, interval(.5, .5, .5), interval(.5, .5, .5), .003, Promising},
		"at a look":                 {DeviceCUDA, Screen, interval(0, .994, 9), interval(0, .994, 9), 0, Promising},
		"too little at a look":      {DeviceCUDA, Screen, interval(0, .996, 9), interval(0, .996, 9), 0, Revert},
		"no number at a look":       {DeviceCUDA, Screen, interval(0, math.NaN(), 9), interval(0, 1, 9), 0, Revert},
		"predicted to be faster":    {DeviceCost, Final, interval(.7, .8, .9), interval(.7, .8, .9), 0, Shortlist},
		"predicted, within 1 %":     {DeviceCost, Final, interval(.9, .995, 1.1), interval(.9, .995, 1.1), 0, Revert},
		"predicted, worse at one":   {DeviceCost, Final, interval(.7, .8, .9), interval(1, 1.2, 1.3), 0, Revert},
		"predicted, at first":       {DeviceCost, Screen, interval(.9, .99, 1.1), interval(.9, .99, 1.1), 0, Promising},
		"predicted slower, at once": {DeviceCost, Screen, interval(1, 1.1, 1.2), interval(1, 1.1, 1.2), 0, Revert},
	} {
		v := &Verdict{Class: Pass, Rung: c.rung, Subject: Subject{Device: c.device},
			Timing: &Timing{Ratio: c.ratio, Band: c.band, At: []At{{Ratio: c.at}}}}
		rules.Decide(v)
		require.Equal(t, c.want, v.Decision, name)
		require.NotEmpty(t, v.Why, name)
	}
	for _, class := range []Class{Fail, Rejected, Timeout, Crash} {
		v := &Verdict{Class: class, Rung: Final, Reason: diag.Errorf(codeNoVerdict, "x", "so it is")}
		rules.Decide(v)
		require.Equal(t, Revert, v.Decision)
		require.Equal(t, string(class)+": x: so it is", v.Why)
	}
}

// Where twins differ by too much, something else was measured too.
func TestTwinsThatDiffer(t *testing.T) {
	rules := DefaultRules()
	v := &Verdict{Class: Pass, Rung: Final, Subject: Subject{Device: DeviceCUDA},
		Timing: &Timing{Ratio: Interval{.8, .8, .8}, Band: .1}}
	rules.Decide(v)
	require.Equal(t, Revert, v.Decision)
	require.Equal(t, "identical builds differ by 10.00 %; want at most 4 %: something else was measured too", v.Why)
	v.Band, v.Spread = 0.01, 0.05
	rules.Decide(v)
	require.Equal(t, "identical builds differ by 5.00 %; want at most 4 %: something else was measured too", v.Why)
	require.False(t, rules.Undecided(v), "more of it tells nothing")
}

// A gain that is too little to be kept moves the incumbent, if it is seen in all of its interval.
func TestSteps(t *testing.T) {
	small := Interval{0.993, 0.989, 0.997}
	for _, tt := range []struct {
		name         string
		ratio, worst Interval
		rung         Rung
		band         float64
		want         bool
	}{
		{"keeps", Interval{0.98, 0.97, 0.985}, Interval{0.98, 0.97, 0.985}, Final, 0.003, true},
		{"a step", small, small, Final, 0.003, true},
		{"too small", Interval{0.996, 0.995, 0.997}, Interval{0.996, 0.995, 0.997}, Final, 0.003, false},
		{"not seen", Interval{0.993, 0.985, 1.001}, Interval{0.993, 0.985, 1.001}, Final, 0.003, false},
		{"a position loses", small, Interval{1.012, 1.008, 1.016}, Final, 0.003, false},
		{"no number", small, Interval{1, 1, math.NaN()}, Final, 0.003, false},
		{"an early rung", small, small, Screen, 0.003, false},
		{"twins too far apart", small, small, Final, 0.05, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := toyCampaign(knobs.Settings{})
			s := NewState(c)
			j := &Job{Role: RoleCandidate, Rung: tt.rung, Settings: knobs.Settings{"tiling.ring.pace": "600"},
				Against: c.Start}
			v := toyVerdict(c, j)
			v.Ratio, v.At[0].Ratio, v.Band = tt.ratio, tt.worst, tt.band
			c.Rules.Decide(v)
			require.Equal(t, tt.want, s.Accepts(&Trial{Job: *j, Verdict: v}))
			j.Against = knobs.Settings{"tiling.ring.pace": "0"}
			require.False(t, s.Accepts(&Trial{Job: *j, Verdict: v}), "not against the incumbent")
			j.Role, j.Against = RoleConfirm, c.Start
			require.False(t, s.Accepts(&Trial{Job: *j, Verdict: v}))
		})
	}
}

// Predictions have an interval of their errors, which says nothing of a step.
func TestStepsByPredictions(t *testing.T) {
	rules := DefaultRules()
	v := &Verdict{Class: Unchecked, Rung: Final, Subject: Subject{Device: DeviceCost},
		Timing: &Timing{Ratio: Interval{0.993, 0.9, 1.1}, At: []At{{Ratio: Interval{0.993, 0.9, 1.1}}}}}
	rules.Decide(v)
	require.True(t, rules.moves(v))
	v.At[0].Ratio.Mean = 1.02
	require.False(t, rules.moves(v), "a position loses")
}
