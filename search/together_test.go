package search

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// A toyCrew makes trials without processes, and writes down how.
type toyCrew struct {
	crew     *Crew
	c        *Campaign
	building atomic.Int32
	most     atomic.Int32 // builds at a time
	mu       sync.Mutex
	stages   map[string][]Stage                 // of a trial, by what it is
	before   func(index int, stage Stage) error // may fail
	seconds  float64                            // of the GPU, each
}

func newToyCrew(t *testing.T, c *Campaign, jobs int) *toyCrew {
	t.Helper()
	crew := &toyCrew{c: c, stages: map[string][]Stage{}}
	crew.crew = &Crew{Jobs: jobs, Ask: (*State).noAsker, Key: toyPublic, Work: func(ctx context.Context, dir string,
		p *Plan, index int, stage Stage) (*Made, error) {
		crew.most.Store(max(crew.most.Load(), crew.building.Add(1)))
		defer crew.building.Add(-1)
		if crew.before != nil {
			if err := crew.before(index, stage); err != nil {
				return nil, err
			}
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond)
		crew.mu.Lock()
		of := jobID(&p.Trials[index].Job)
		crew.stages[of] = append(crew.stages[of], stage)
		crew.mu.Unlock()
		v := toyVerdict(c, &p.Trials[index].Job)
		if stage == StageBuild && v.Class != Rejected {
			return nil, nil
		}
		v.GPUSeconds = crew.seconds
		toyKey.Sign(v)
		made := &Made{Schema: MadeSchema, ID: p.Trials[index].ID, Campaign: p.Campaign, Previous: p.Previous,
			Job: p.Trials[index].Job, Verdict: v}
		return made, made.write(dir, false)
	}}
	return crew
}

func (c *toyCrew) run(t *testing.T, dir string, budget Budget) (*State, string) {
	t.Helper()
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	r := toyRunner(j, 0)
	r.Budget = budget
	stop, err := r.Together(t.Context(), j, c.crew)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	_, err = Verify(dir, toyPublic)
	require.NoError(t, err)
	return j.State, stop
}

// What is screened is built by several and then measured; what goes on was built before, and what is refused is not
// measured. The trials are those that rounds on many machines make.
func TestTogether(t *testing.T) {
	c := toyCampaign(toySpace().Cold())
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, Create(dir, c))
	require.NoError(t, Create(other, c))
	crew := newToyCrew(t, c, 4)
	s, stop := crew.run(t, dir, Budget{Trials: 40})
	require.Equal(t, "41 trials are made", stop, "one of them confirms the best")
	require.NotNil(t, s.Confirmed())
	require.GreaterOrEqual(t, crew.most.Load(), int32(2))
	want, _ := inRounds(t, other, Budget{Trials: 40}, func(p *Plan) {
		for i := range p.Trials {
			inProcess(t, other, p, i)
			stages := crew.stages[jobID(&p.Trials[i].Job)]
			switch v := toyVerdict(c, &p.Trials[i].Job); {
			case p.Trials[i].Rung != Screen:
				require.Equal(t, []Stage{StageJudge}, stages)
			case v.Class == Rejected:
				require.Equal(t, []Stage{StageBuild}, stages)
			default:
				require.Equal(t, []Stage{StageBuild, StageJudge}, stages)
			}
		}
	})
	require.Equal(t, idsOf(want), idsOf(s.Trials()))
}

func idsOf(trials []Trial) (ids []string) {
	for i := range trials {
		ids = append(ids, jobID(&trials[i].Job))
	}
	return ids
}

func jobID(j *Job) string { return string(j.Role) + " " + string(j.Rung) + " " + IDOf(j.Settings) }

// When the time is up, what is made is entered, the best is confirmed, and another run goes on from there.
func TestTogetherInPieces(t *testing.T) {
	c := toyCampaign(toySpace().Cold())
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	crew := newToyCrew(t, c, 2)
	var s *State
	var stop string
	synctest.Test(t, func(t *testing.T) { // in which time goes by when all else waits for one trial
		hang := make(chan struct{})
		crew.before = func(index int, stage Stage) error {
			if stage == StageJudge && index == 5 {
				<-hang
			}
			return nil
		}
		time.AfterFunc(300*time.Millisecond, func() { close(hang) })
		s, stop = crew.run(t, dir, Budget{Time: 200 * time.Millisecond})
	})
	require.Equal(t, "the time is up", stop)
	made := len(s.Trials())
	require.Greater(t, made, 1)
	require.Less(t, made, 1+c.Rules.Bracket, "a bracket of which some is missing")

	crew.before = nil
	s, stop = crew.run(t, dir, Budget{Trials: 30})
	require.Equal(t, "31 trials are made", stop)
	require.NotNil(t, s.Confirmed())
	brackets := map[int]int{}
	for _, trial := range s.Trials() {
		if trial.Rung == Screen && !trial.refused() {
			brackets[trial.Bracket]++
		}
	}
	require.Equal(t, c.Rules.Bracket, brackets[0], "the bracket that was cut is made whole")
}

// GPU seconds are those of the whole campaign, and none is begun beyond them.
func TestTogetherSpendsGPUSeconds(t *testing.T) {
	c := toyCampaign(toySpace().Cold())
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	crew := newToyCrew(t, c, 1)
	crew.seconds = 10
	s, stop := crew.run(t, dir, Budget{GPUSeconds: 65})
	require.Equal(t, "the GPU seconds are spent", stop)
	require.InDelta(t, 75, s.gpuSeconds, 11, "two may measure, one after the other")
	before := len(s.Trials())
	s, stop = crew.run(t, dir, Budget{GPUSeconds: 65})
	require.Equal(t, "the GPU seconds are spent", stop)
	require.Len(t, s.Trials(), before)
}

// What no configuration is to blame for ends the run, and is no trial.
func TestTogetherFails(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	crew := newToyCrew(t, c, 3)
	crew.before = func(index int, stage Stage) error {
		if index == 2 {
			return errors.New("no GPU")
		}
		return nil
	}
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	defer j.Close()
	_, err = toyRunner(j, 40).Together(t.Context(), j, crew.crew)
	require.EqualError(t, err, "no GPU")
	require.Len(t, j.State.Trials(), 1)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err = toyRunner(j, 40).Together(ctx, j, crew.crew)
	require.EqualError(t, err, "enough")
}
