package search

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// toyStage is the time of the toy's qkv by itself: of the knobs that have a say in it.
func toyStage(s knobs.Settings) float64 {
	only := knobs.Settings{}
	for path, v := range s {
		if path == "tiling.warps.qkv" || path == "tiling.ring.pace" {
			only[path] = v
		}
	}
	return toyTime(only) - 90
}

// toyTuning is a campaign of that stage. What a pace of less than 800 gains there costs the step more.
func toyTuning(t *testing.T, step func(s knobs.Settings) float64, trials int) *Journal {
	t.Helper()
	c := toyCampaign(knobs.Settings{})
	c.Stage, c.Objective, c.Proposers = "qkv", ObjectiveOfStage, []string{proposeLocal}
	for i := range c.Space.Knobs {
		if path := c.Space.Knobs[i].Path; path == "tiling.warps.qkv" || path == "tiling.ring.pace" {
			c.Space.Knobs[i].Stages = []string{"qkv"}
		}
	}
	c.Space = c.Space.Of("qkv")
	require.Len(t, c.Space.Knobs, 2)
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	t.Cleanup(func() { j.Close() })
	r := toyRunner(j, trials)
	r.Evaluate = func(_ context.Context, job *Job) (*Verdict, error) {
		v := toyVerdict(c, job)
		v.Stage = c.StageOf(job)
		time := step
		if v.Stage != "" {
			time = toyStage
		}
		if v.Timing != nil {
			ratio := time(job.Settings) / time(job.Against)
			v.Ratio = Interval{ratio, ratio * 0.999, ratio * 1.001}
			for i := range v.At {
				v.At[i].Ratio, v.At[i].Ceiling = v.Ratio, 0
			}
		}
		c.Rules.Decide(v)
		toyKey.Sign(v)
		return v, nil
	}
	_, err = r.Run(t.Context(), j)
	require.NoError(t, err)
	sound, err := Verify(dir, toyPublic)
	require.NoError(t, err)
	require.Zero(t, sound.BestUnproved)
	again, _, _, err := Load(dir)
	require.NoError(t, err)
	requireSame(t, j.State, again)
	return j
}

// requireSame holds a state that was folded anew to one that made the trials.
func requireSame(t *testing.T, made, folded *State) {
	t.Helper()
	for _, of := range []func(*State) any{
		func(s *State) any { return first(s.Adopted()) },
		func(s *State) any { return s.Confirm() },
		func(s *State) any { return s.bests },
		func(s *State) any {
			job, _, err := s.Next()
			require.NoError(t, err)
			return job
		},
	} {
		require.Equal(t, of(made), of(folded))
	}
}

func confirmations(s *State) (all []*Trial) {
	for i := range s.Trials() {
		if t := &s.Trials()[i]; t.Role == RoleConfirm {
			all = append(all, t)
		}
	}
	return all
}

// What is best for a stage by itself is adopted if the step shows it at all positions, those held out among them.
func TestStageThatTheStepConfirms(t *testing.T) {
	s := toyTuning(t, toyTime, 40).State
	best, ratio := s.Best()
	require.Equal(t, knobs.Settings{"tiling.warps.qkv": "4", "tiling.ring.pace": "600"}, best)
	require.InDelta(t, toyStage(best)/toyStage(nil), ratio, 1e-9)
	adopted, known := s.Adopted()
	require.True(t, known)
	require.Equal(t, best, adopted)
	all := confirmations(s)
	require.Len(t, all, 1)
	require.True(t, all[0].Accepted)
	require.Empty(t, all[0].Verdict.Stage)
	require.Equal(t, []int{0, 50, 100}, all[0].Verdict.Positions)
	require.Equal(t, all[0].N, s.Confirmed().N)
	require.Nil(t, s.Confirm())
	for _, trial := range s.Trials()[:all[0].N] {
		require.Equal(t, "qkv", trial.Verdict.Stage)
	}
	require.Contains(t, s.Results(), "\n0\tt\t1\ttoy\t", "the playbook's loop over instructions")
	require.Regexp(t, `(?m)^\d+\tt\t2\ttoy\t.*\tconfirm\t`, s.Results())
	page, err := s.Report()
	require.NoError(t, err)
	require.Contains(t, string(page), "stage qkv by itself")
	require.Contains(t, string(page), "Adopted is what the whole step has confirmed")
}

// What the step does not show is reverted: the best before is confirmed then, and so on down to the start.
func TestStageThatTheStepReverts(t *testing.T) {
	later := func(s knobs.Settings) float64 { // a step that only the first of the bests is good for
		if s["tiling.ring.pace"] != "" && s["tiling.warps.qkv"] != "" {
			return 200
		}
		return toyTime(s)
	}
	s := toyTuning(t, later, 60).State
	best, _ := s.Best()
	require.Len(t, best, 2)
	all := confirmations(s)
	require.Greater(t, len(all), 1)
	for i, trial := range all {
		require.Equal(t, i == len(all)-1, trial.Accepted, trial.Settings)
	}
	adopted, known := s.Adopted()
	require.True(t, known)
	require.Len(t, adopted, 1)
	require.Equal(t, all[len(all)-1].N, s.Confirmed().N)

	s = toyTuning(t, func(knobs.Settings) float64 { return 100 }, 60).State
	adopted, known = s.Adopted()
	require.True(t, known)
	require.Empty(t, adopted)
	require.Len(t, confirmations(s), len(s.bests))
	require.Greater(t, len(s.bests), 1)
	require.False(t, s.Confirmed().Accepted)
	page, err := s.Report()
	require.NoError(t, err)
	require.Contains(t, string(page), "The step does not show it")
	require.Nil(t, s.Confirm(), "nothing is confirmed twice")
}

// A verdict of a step is none of a stage, and the other way round.
func TestVerdictsOfStages(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	job := &Job{Rung: Final, Settings: knobs.Settings{"tiling.ring.pace": "600"}, Against: c.Start}
	v := toyVerdict(c, job)
	c.Stage = "qkv"
	require.ErrorContains(t, c.verdictFor(job, v), "is about a step, not about qkv")
	v.Stage = "qkv"
	require.NoError(t, c.verdictFor(job, v))
	v.Stage = "down"
	require.ErrorContains(t, c.verdictFor(job, v), "is about down, not about qkv")
	job.Role = RoleConfirm
	require.Equal(t, []int{0, 50, 100}, c.PositionsOf(job))
}
