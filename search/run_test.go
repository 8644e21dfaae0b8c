package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// From the least clever values a search always comes to the bottom of the basin that it begins in, and in about half of
// the runs to that of the better one, which no single change leads to.
func TestColdSearchFindsWhatIsThere(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	best := toyTime(knobs.Settings{"pipelining_depth": "8", "tiling.exchange.copies": "4", "tiling.ring.pace": "600",
		"tiling.ring.run_ahead": "16", "tiling.warps.qkv": "4"})
	found := 0
	for seed := range uint64(8) {
		c := toyCampaign(toySpace().Cold())
		c.Seed, c.Cold = seed, true
		j, stop := ran(t, c, 400)
		s, ratio := j.State.Best()
		require.Less(t, ratio, 0.8, "%d: %s", seed, stop)
		require.Greater(t, best/toyTime(s), 0.935, "%d: %s", seed, stop)
		t.Logf("seed %d: %.4f of the best there is, after %d trials: %s", seed, best/toyTime(s), len(j.State.Trials()),
			stop)
		if best/toyTime(s) > 0.99 {
			found++
		}
		confirmed := j.State.Confirmed()
		require.NotNil(t, confirmed)
		require.Equal(t, []int{50}, confirmed.Verdict.Positions)
		require.InDelta(t, toyTime(s)/toyTime(c.Start), confirmed.Verdict.Ratio.Mean, 1e-9)
		require.InDelta(t, confirmed.Verdict.Ratio.Mean, ratio, 1e-9)
	}
	require.GreaterOrEqual(t, found, 3)
}

// What a search may never do, whatever it is asked: keep what is not PASS, not final, or not better than the best.
func TestOnlyWhatIsBetterIsKept(t *testing.T) {
	for seed := range uint64(5) {
		c := toyCampaign(knobs.Settings{})
		c.Seed = seed
		j, _ := ran(t, c, 200)
		best, kept := toyTime(c.Start), 0
		for _, trial := range j.State.Trials() {
			if !trial.Best {
				continue
			}
			kept++
			require.Equal(t, Pass, trial.Verdict.Class)
			require.Equal(t, Final, trial.Verdict.Rung)
			require.Equal(t, Keep, trial.Verdict.Decision)
			require.Less(t, toyTime(trial.Settings), best*0.991)
			best = toyTime(trial.Settings)
		}
		require.Positive(t, kept)
	}
}

// Halving: of nine that are screened three race, and one is judged in full.
func TestBrackets(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 60)
	counts := map[string]int{}
	for _, trial := range j.State.Trials() {
		if trial.Role == RoleCandidate && trial.Verdict.Class != Rejected {
			counts[fmt.Sprintf("%d %s", trial.Bracket, trial.Rung)]++
		}
	}
	require.Equal(t, 9, counts["0 screen"], counts)
	require.LessOrEqual(t, counts["0 race"], 3)
	require.Equal(t, 1, counts["0 final"])
	require.Equal(t, 9, counts["1 screen"])
}

// A basin accepts what is better than its own incumbent, though it is worse than the best, which is kept apart; its
// incumbent challenges the best when the basin is left.
func TestBasins(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Rules.Hops = 10
	j, stop := ran(t, c, 700)
	hops, local, challenges := 0, 0, 0
	var incumbent, best knobs.Settings = c.Start, c.Start
	for _, trial := range j.State.Trials() {
		switch {
		case trial.Role == RoleHop:
			require.Equal(t, best, trial.Against)
			if trial.Accepted {
				hops++
				incumbent = trial.Settings
			}
		case trial.Role == RoleCandidate:
			require.Equal(t, incumbent, trial.Against)
			if trial.Accepted {
				incumbent = trial.Settings
				if toyTime(incumbent) > toyTime(best) {
					require.False(t, trial.Best)
					local++
				}
			}
		case trial.Role == RoleChallenge:
			challenges++
			require.Equal(t, incumbent, trial.Settings)
			require.Equal(t, best, trial.Against)
		}
		if trial.Best {
			best = trial.Settings
		}
	}
	require.Positive(t, hops, stop)
	require.Positive(t, local)
	require.Positive(t, challenges)
	require.Equal(t, best, first(j.State.Best()))
}

func first[A, B any](a A, _ B) A { return a }

// Three equal crashes with a value retire it; refusals retire nothing, for they cost nothing.
func TestRetiredValues(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Proposers = []string{proposeRandom}
	c.Rules.Barren, c.Rules.Plateau = 1000, 1000
	j, _ := ran(t, c, 400)
	s := j.State
	require.Equal(t, "CRASH AMK6011", s.retired["tiling.warps.down=1"])
	require.Equal(t, "TIMEOUT AMK6012", s.retired["tiling.ring.run_ahead=4"])
	require.NotContains(t, s.retired, "page_allocation=linear")
	for value, path := range map[knobs.Value]string{"1": "tiling.warps.down", "4": "tiling.ring.run_ahead"} {
		bad := 0
		for _, trial := range s.Trials() {
			if trial.Settings[path] == value {
				bad++
			}
		}
		require.Equal(t, 3, bad, "%s is proposed three times and then no more", path)
	}
	require.Greater(t, s.reasons["AMK6008"], 3)
}

func TestRegionsAreLeft(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Proposers = []string{proposeLocal}
	j, _ := ran(t, c, 20)
	require.Contains(t, j.State.movedOn("down"), "less of a step")
	says := func(text string) {
		t.Helper()
		regions := j.State.Regions()
		at := slices.IndexFunc(regions, func(r RegionInfo) bool { return r.Name == "ring" })
		require.Equal(t, text, regions[at].Part())
		page, err := j.State.Report()
		require.NoError(t, err)
		require.Contains(t, string(page), "<td>ring</td><td>"+text+"</td>")
	}
	says("40.0 % of a predicted step")
	start := j.State.Trials()[0].Verdict
	start.SharesOf = SharesOfProfile
	says("40.0 % of a measured step")
	start.Shares = nil
	says("an unknown part of a step")
	start.Shares = Shares{"down": 0.001}
	for _, trial := range j.State.Trials() {
		require.NotEqual(t, "down", trial.Region)
	}
	j.State.regions["ring"].fruitless = c.Rules.Plateau
	require.Equal(t, "plateau", j.State.movedOn("ring"))
	require.NotContains(t, j.State.openRegions(), "ring")
}

// Knobs of the order of additions are left alone where the same bits are wanted.
func TestSameBits(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.SameBits = true
	j, _ := ran(t, c, 200)
	for _, trial := range j.State.Trials() {
		require.NotContains(t, trial.Settings, "tiling.warps.qkv")
		require.NotContains(t, trial.Settings, "tiling.warps.down")
	}
}

func TestWhySearchesEnd(t *testing.T) {
	_, stop := ran(t, toyCampaign(knobs.Settings{}), 25)
	require.Equal(t, "25 trials are made", stop)
	_, stop = ran(t, toyCampaign(knobs.Settings{"tiling.warps.qkv": "1"}), 25)
	require.Equal(t, "the start is FAIL: toy: the toy is wrong", stop)
	_, stop = ran(t, toyCampaign(knobs.Settings{}), 0)
	require.Equal(t, "3 hops, one after another, have led to nothing better", stop)

	c := toyCampaign(knobs.Settings{})
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	defer j.Close()
	r := toyRunner(j, 0)
	r.Evaluate = func(_ context.Context, job *Job) (*Verdict, error) {
		v := toyVerdict(c, job)
		for i := range v.At {
			v.At[i].Ceiling = v.At[i].Candidate.Median * 0.995
		}
		return v, nil
	}
	stop, err = r.Run(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, "the best possible gain, 0.50 %, is below what counts, 1.00 %", stop)
	require.Len(t, j.State.Trials(), 1)

	r.Evaluate = func(context.Context, *Job) (*Verdict, error) { return nil, errors.New("no GPU") }
	j.State.trials[0].Verdict.At[0].Ceiling = 1
	_, err = r.Run(t.Context(), j)
	require.EqualError(t, err, "no GPU")
	require.Len(t, j.State.Trials(), 1, "what nothing is to blame for is no trial")

	r.Budget.Time, r.Now = time.Minute, func() func() time.Time {
		now := time.Unix(0, 0)
		return func() time.Time { now = now.Add(time.Minute); return now }
	}()
	stop, err = r.Run(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, "the time is up", stop)
}

// A command that proposes is asked for settings and nothing else. What is none is written down.
func TestCommandsThatPropose(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Proposers = []string{"exec:agent"}
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	defer j.Close()
	asked := 0
	r := toyRunner(j, 30)
	r.Ask = func(_ context.Context, job *Job) (*Proposal, error) {
		asked++
		require.NotEmpty(t, job.Region)
		switch asked {
		case 1:
			return &Proposal{Settings: knobs.Settings{"tiling.ring.pace": "600"}, Why: "more often"}, nil
		case 2:
			return &Proposal{Settings: knobs.Settings{"tiling.ring.pace": "600"}}, nil
		case 3:
			return &Proposal{Settings: knobs.Settings{"tiling.ring.pase": "600"}}, nil
		}
		return nil, errors.New("out of ideas")
	}
	stop, err := r.Run(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, "proposals that could not be tried, one after another: 3", stop)
	trials := j.State.Trials()
	require.Equal(t, "more often", trials[1].Why)
	require.Contains(t, trials[2].Refused.Msg, "was proposed before")
	require.Contains(t, trials[3].Refused.Msg, "did you mean tiling.ring.pace")
	require.Contains(t, trials[4].Refused.Msg, "out of ideas")
	require.Equal(t, 5, asked+1)
}

func TestVerdictsOfAnotherJob(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	job := &Job{Rung: Final, Settings: knobs.Settings{"tiling.ring.pace": "600"}, Against: c.Start}
	require.NoError(t, c.verdictFor(job, toyVerdict(c, job)))
	for want, change := range map[string]func(v *Verdict){
		"of another model":         func(v *Verdict) { v.Source = "other" },
		"another target or device": func(v *Verdict) { v.Device = DeviceCost },
		"other settings":           func(v *Verdict) { v.ID = "x" },
		"another baseline":         func(v *Verdict) { v.BaselineID = "x" },
		"another rung":             func(v *Verdict) { v.Rung = Race },
		"other positions":          func(v *Verdict) { v.Positions = slices.Clone(c.HeldOut) },
	} {
		v := toyVerdict(c, job)
		change(v)
		require.ErrorContains(t, c.verdictFor(job, v), want)
	}
}
