package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// From the unoptimised values a search comes to the best there is, though the predictions that it goes by are
// wrong about two knobs and blind to a third, and no single change leads from one basin of the toy to the better one.
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
		j, stop := ran(t, c, 200)
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
	require.Equal(t, 8, found)
}

// What a search may never do, whatever it is asked: accept what is not PASS, not final, or not faster than the
// incumbent.
func TestOnlyWhatIsBetterIsAccepted(t *testing.T) {
	for seed := range uint64(5) {
		c := toyCampaign(knobs.Settings{})
		c.Seed = seed
		j, _ := ran(t, c, 200)
		incumbent, accepted := c.Start, 0
		for _, trial := range j.State.Trials() {
			if trial.Role == RoleCandidate {
				require.Equal(t, incumbent, trial.Against)
			}
			if !trial.Accepted {
				continue
			}
			accepted++
			require.Equal(t, Pass, trial.Verdict.Class)
			require.Equal(t, Final, trial.Verdict.Rung)
			require.LessOrEqual(t, toyTime(trial.Settings), toyTime(incumbent)*(1-c.Rules.Step))
			incumbent = trial.Settings
		}
		require.Positive(t, accepted)
		require.Equal(t, incumbent, first(j.State.Best()))
	}
}

func first[A, B any](a A, _ B) A { return a }

// Nine are screened; of those that are promising the best are judged in full, the best first, until one is accepted.
func TestRounds(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 90)
	looks, finals := map[int][]Trial{}, map[int][]Trial{}
	for _, trial := range j.State.Trials() {
		switch {
		case trial.Role != RoleCandidate:
		case trial.Rung == Screen:
			require.Empty(t, finals[trial.Round])
			looks[trial.Round] = append(looks[trial.Round], trial)
		default:
			finals[trial.Round] = append(finals[trial.Round], trial)
		}
	}
	require.Greater(t, len(looks), 5)
	for round, all := range finals {
		require.Len(t, looks[round], 9)
		require.LessOrEqual(t, len(all), 3)
		promising := slices.DeleteFunc(looks[round], func(t Trial) bool { return t.Verdict.Decision != Promising })
		slices.SortStableFunc(promising, func(a, b Trial) int {
			return cmp.Compare(a.Verdict.Ratio.Mean, b.Verdict.Ratio.Mean)
		})
		for i, trial := range all {
			require.Equal(t, promising[i].Settings, trial.Settings)
			require.False(t, trial.Accepted && i < len(all)-1, "one that is accepted ends the round")
		}
	}
}

// However many are made at a time, and whichever is made first, the trials are the same.
func TestSeveralAtATime(t *testing.T) {
	made := func(builds, judges int, wait func(*Job)) (dir string) {
		dir = t.TempDir()
		require.NoError(t, Create(dir, toyCampaign(toySpace().Cold())))
		j, err := OpenJournal(dir)
		require.NoError(t, err)
		defer j.Close()
		j.out = unsynced{j.out}
		r := toyRunner(j, 60)
		var running, most atomic.Int64
		r.Builds, r.Judges = builds, judges
		r.Evaluate = func(_ context.Context, job *Job) (*Verdict, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			wait(job)
			return toyVerdict(j.Campaign, job), nil
		}
		r.Build = func(_ context.Context, job *Job) (*Verdict, error) {
			if v := toyVerdict(j.Campaign, job); !v.Class.Holds() {
				return v, nil
			}
			return nil, nil
		}
		_, err = r.Run(t.Context(), j)
		require.NoError(t, err)
		require.LessOrEqual(t, most.Load(), int64(judges))
		return dir
	}
	one := made(1, 1, func(*Job) {})
	several := made(4, 3, func(j *Job) { time.Sleep(time.Duration(9-j.N%9) * time.Millisecond) })
	require.Equal(t, trialsOf(t, one), trialsOf(t, several))
}

// Three equal crashes with a value retire it; refusals retire nothing, for they cost nothing.
func TestRetiredValues(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	j, _ := ran(t, c, 400)
	s := j.State
	require.Equal(t, "CRASH AMK6011", s.retired["tiling.warps.down=1"])
	require.Equal(t, "TIMEOUT AMK6012", s.retired["tiling.ring.run_ahead=4"])
	require.NotContains(t, s.retired, "page_allocation=linear")
	for value, path := range map[knobs.Value]string{"1": "tiling.warps.down", "4": "tiling.ring.run_ahead"} {
		bad, round := 0, 0
		for _, trial := range s.Trials() {
			if trial.Settings[path] == value {
				bad, round = bad+1, trial.Round
			}
		}
		require.GreaterOrEqual(t, bad, 3)
		require.Less(t, round, s.round()/2, "%s is proposed in a few rounds and then no more", path)
	}
	require.Zero(t, s.found[Rejected], "what the compiler refuses is not proposed")
}

// What was measured corrects predictions: a proposal is expected to take what it takes, not what was believed.
func TestPredictionsAreCorrected(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 200)
	s := j.State
	copies := knobs.Settings{"tiling.exchange.copies": "4"}
	require.InDelta(t, -math.Log(0.9), s.correction(copies, knobs.Settings{}), 0.03)
	require.Equal(t, -s.correction(copies, knobs.Settings{}), s.correction(knobs.Settings{}, copies))
	require.Zero(t, s.correction(copies, copies))
	require.Equal(t, map[string]float64{"tiling.exchange.copies=4": 1, "tiling.exchange.copies=2": -1},
		s.apart(copies, knobs.Settings{}), "a default is a value")
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

// opened is a campaign with a runner whose evaluations a test may change.
func opened(t *testing.T, c *Campaign, trials int) (*Journal, *Runner) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	t.Cleanup(func() { j.Close() })
	j.out = unsynced{j.out}
	return j, toyRunner(j, trials)
}

func TestWhySearchesEnd(t *testing.T) {
	_, stop := ran(t, toyCampaign(knobs.Settings{}), 25)
	require.Equal(t, "25 trials are made", stop)
	_, stop = ran(t, toyCampaign(knobs.Settings{"tiling.warps.qkv": "1"}), 25)
	require.Equal(t, "the start is FAIL: toy: the toy is wrong", stop)
	few := toyCampaign(knobs.Settings{})
	few.Space.Knobs = few.Space.Knobs[3:5]
	few.Space.Seal()
	j, stop := ran(t, few, 0)
	require.Equal(t, "everything that is in reach was tried", stop)
	require.Len(t, j.State.named, 6)

	j, r := opened(t, toyCampaign(knobs.Settings{}), 0)
	r.Evaluate = func(_ context.Context, job *Job) (*Verdict, error) {
		v := toyVerdict(j.Campaign, job)
		for i := range v.At {
			v.At[i].Ceiling = v.At[i].Candidate.Median * 0.995
		}
		return v, nil
	}
	stop, err := r.Run(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, "the best possible gain, 0.50 %, is below what counts, 1.00 %", stop)
	require.Len(t, j.State.Trials(), 1)

	r.Evaluate = func(context.Context, *Job) (*Verdict, error) { return nil, errors.New("no GPU") }
	j.State.trials[0].Verdict.At[0].Ceiling = 1
	_, err = r.Run(t.Context(), j)
	require.EqualError(t, err, "no GPU")
	require.Len(t, j.State.Trials(), 1, "what nothing is to blame for is not a trial")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err = r.Run(ctx, j)
	require.EqualError(t, err, "enough")
}

// When the time is up what is being made is cancelled, and made by the next run: the round is made whole.
func TestTimeIsUp(t *testing.T) {
	j, r := opened(t, toyCampaign(toySpace().Cold()), 40)
	r.Budget.Time = 50 * time.Millisecond
	whole := r.Evaluate
	r.Evaluate = func(ctx context.Context, job *Job) (*Verdict, error) {
		if job.N == 5 {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return whole(ctx, job)
	}
	synctest.Test(t, func(t *testing.T) { // in which time passes when everything else waits for that trial
		stop, err := r.Run(t.Context(), j)
		require.NoError(t, err)
		require.Equal(t, "the time is up", stop)
	})
	require.Len(t, j.State.Trials(), 5)
	r.Evaluate, r.Budget.Time = whole, 0
	_, err := r.Run(t.Context(), j)
	require.NoError(t, err)
	uncut, _ := ran(t, toyCampaign(toySpace().Cold()), 40)
	require.Equal(t, trialsOf(t, uncut.dir), trialsOf(t, j.dir))
}

// GPU seconds are those of the whole campaign, and no trial is begun beyond them.
func TestGPUSecondsAreSpent(t *testing.T) {
	j, r := opened(t, toyCampaign(toySpace().Cold()), 0)
	r.Budget.GPUSeconds = 65
	r.Evaluate = func(_ context.Context, job *Job) (*Verdict, error) {
		v := toyVerdict(j.Campaign, job)
		v.GPUSeconds = 10
		toyKey.Sign(v)
		return v, nil
	}
	for range 2 {
		stop, err := r.Run(t.Context(), j)
		require.NoError(t, err)
		require.Equal(t, "the GPU seconds are spent", stop)
		require.Len(t, j.State.Trials(), 7)
	}
}

// What a fresh process shows no gain of is taken back, and what was the incumbent before it is confirmed.
func TestWhatIsNotConfirmedIsTakenBack(t *testing.T) {
	c := toyCampaign(toySpace().Cold())
	j, r := opened(t, c, 100)
	whole := r.Evaluate
	refute := 2
	evaluate := func(ctx context.Context, job *Job) (*Verdict, error) {
		if job.Role == RoleConfirm && refute > 0 {
			refute--
			v := toyVerdict(c, &Job{Role: job.Role, Rung: job.Rung, Settings: c.Start, Against: c.Start})
			v.ID, v.Settings = IDOf(job.Settings), job.Settings
			toyKey.Sign(v)
			return v, nil
		}
		return whole(ctx, job)
	}
	r.Evaluate = evaluate
	_, err := r.Run(t.Context(), j)
	require.NoError(t, err)
	var accepted, confirmed []knobs.Settings
	for _, trial := range j.State.Trials() {
		if trial.Accepted {
			accepted = append(accepted, trial.Settings)
		}
		if trial.Role == RoleConfirm {
			confirmed = append(confirmed, trial.Settings)
		}
	}
	require.Greater(t, len(accepted), 2)
	slices.Reverse(accepted)
	require.Equal(t, accepted[:3], confirmed)
	require.Equal(t, accepted[2], first(j.State.Best()))
	require.True(t, j.State.Confirmed().Verdict.Confirms())
	require.NoError(t, j.Close())
	_, err = Verify(j.dir, toyPublic)
	require.NoError(t, err)

	// Where nothing is left, the page says what was refuted.
	j, r = opened(t, c, 60)
	whole, refute, r.Evaluate = r.Evaluate, 100, evaluate
	_, err = r.Run(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, c.Start, first(j.State.Best()))
	page, err := j.State.Report()
	require.NoError(t, err)
	require.Contains(t, string(page), "Nothing better than the start was found")
	require.Contains(t, string(page), "<strong>Not confirmed:</strong> <code>"+j.State.Refuted().Verdict.ID+"</code>")
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
		"another rung":             func(v *Verdict) { v.Rung = Screen },
		"other positions":          func(v *Verdict) { v.Positions = slices.Clone(c.HeldOut) },
	} {
		v := toyVerdict(c, job)
		change(v)
		require.ErrorContains(t, c.verdictFor(job, v), want)
	}
}
