package search

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An Evaluator returns the verdict on a job, at the positions of the campaign. An error ends the search: it is for
// faults that are not those of a configuration.
type Evaluator func(ctx context.Context, j *Job) (*Verdict, error)

// Budget limits a run of a search. A field of 0 means no limit.
type Budget struct {
	Trials int           // of the campaign, earlier runs included
	Time   time.Duration // of this run
	// GPUSeconds are those of the campaign, including earlier runs, without those of confirmations.
	GPUSeconds float64
}

// A Runner continues a campaign: it proposes a round, has it built and judged, and appends the trials in the order of
// the proposals. So a campaign does not depend on the number of concurrent jobs.
type Runner struct {
	Evaluate Evaluator
	Build    Evaluator // builds for a later Evaluate; a verdict says that it failed. nil: there is nothing to build
	Describe Describer
	Builds   int // builds at a time
	Judges   int // evaluations at a time
	Budget   Budget
	Now      func() time.Time
	Tell     func(s *State, t *Trial) // after each trial
}

// Why a run ends before the search does.
var (
	errTimeUp = errors.New("the time is up")
	errSpent  = errors.New("the GPU seconds are spent")
)

// Run makes trials until the budget is spent or everything was tried, then confirms the incumbent, and returns why it
// ended. Trials that are running when the budget is spent are cancelled, and repeated by the next run.
func (r *Runner) Run(ctx context.Context, j *Journal) (stop string, err error) {
	within := ctx
	if r.Budget.Time > 0 {
		var cancel func()
		within, cancel = context.WithTimeoutCause(ctx, r.Budget.Time, errTimeUp)
		defer cancel()
	}
	for stop == "" {
		var jobs []Job
		if jobs, stop, err = r.next(within, j.State); err == nil && stop == "" {
			err = r.make(within, j, jobs)
		}
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case within.Err() != nil:
			stop = errTimeUp.Error()
		case errors.Is(err, errSpent):
			stop = errSpent.Error()
		case err != nil:
			return "", err
		}
	}
	for job := j.State.Confirm(); job != nil; job = j.State.Confirm() {
		if err := r.make(ctx, j, []Job{*job}); err != nil {
			return "", err
		}
	}
	return stop, nil
}

// next returns the jobs that can be made now, at once if need be, or why there are none.
func (r *Runner) next(ctx context.Context, s *State) (jobs []Job, stop string, err error) {
	switch {
	case r.Budget.Trials > 0 && len(s.trials) >= r.Budget.Trials:
		return nil, fmt.Sprintf("%d trials are made", len(s.trials)), nil
	case r.Budget.GPUSeconds > 0 && s.gpuSeconds >= r.Budget.GPUSeconds:
		return nil, errSpent.Error(), nil
	case len(s.trials) == 0:
		return []Job{{Role: RoleStart, Rung: Final, Settings: s.campaign.Start, Against: s.campaign.Start}}, "", nil
	}
	if stop := s.ended(); stop != "" {
		return nil, stop, nil
	}
	if job := s.promoted(); job != nil {
		return []Job{*job}, "", nil
	}
	jobs, err = s.screenings(ctx, r.Describe)
	if err == nil && len(jobs) == 0 {
		return nil, "everything that is in reach was tried", nil
	}
	if left := r.Budget.Trials - len(s.trials); r.Budget.Trials > 0 && len(jobs) > left {
		jobs = jobs[:left]
	}
	return jobs, "", err
}

// screenings are what is left of the round that a run has ended in, or the next round.
func (s *State) screenings(ctx context.Context, describe Describer) ([]Job, error) {
	if len(s.looks) == 0 || len(s.looks) == s.looks[0].Of || !s.current() {
		return s.propose(ctx, describe)
	}
	before := NewState(s.campaign) // as it was when the round was proposed
	for i := range s.trials[:s.looks[0].N] {
		before.Apply(&s.trials[i])
	}
	jobs, err := before.propose(ctx, describe)
	if err != nil {
		return nil, err
	}
	if len(jobs) != s.looks[0].Of { // by another cost model
		return s.propose(ctx, describe)
	}
	jobs = jobs[len(s.looks):]
	for i := range jobs {
		jobs[i].N = len(s.trials) + i
	}
	return jobs, nil
}

// make makes trials, and appends them in their order. The error is the first that no configuration is to blame for,
// errSpent, or the cause of a cancelled context.
func (r *Runner) make(ctx context.Context, j *Journal, jobs []Job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	made := make([]chan *Trial, len(jobs))
	for i := range made {
		made[i] = make(chan *Trial, 1)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.workers(ctx, jobs, func(i int, t *Trial, err error) {
			if err == nil {
				err = j.Campaign.verdictFor(&t.Job, t.Verdict)
			}
			if err != nil {
				cancel(err)
				t = nil
			}
			made[i] <- t
		})
	}()
	defer func() { cancel(nil); <-ended }()
	for i := range jobs {
		t := <-made[i]
		if t == nil {
			return context.Cause(ctx)
		}
		if err := j.Append(t); err != nil {
			return err
		}
		if r.Tell != nil {
			r.Tell(j.State, t)
		}
		if most := r.Budget.GPUSeconds; most > 0 && j.State.gpuSeconds >= most && jobs[i].Role != RoleConfirm {
			return errSpent
		}
	}
	return nil
}

// workers builds and judges jobs, in their order but for how long each takes, n at a time.
func (r *Runner) workers(ctx context.Context, jobs []Job, done func(i int, t *Trial, err error)) {
	builds, judges := make(chan struct{}, max(1, r.Builds)), make(chan struct{}, max(1, r.Judges))
	ends := make([]chan struct{}, len(jobs))
	for i := range jobs {
		ends[i] = make(chan struct{})
		builds <- struct{}{}
		go func() {
			defer close(ends[i])
			t := &Trial{Job: jobs[i], Started: r.Now().UTC().Truncate(time.Millisecond)}
			var err error
			if r.Build != nil && (t.Rung == Screen || t.Role == RoleStart) && ctx.Err() == nil {
				t.Verdict, err = r.Build(ctx, &t.Job)
			}
			<-builds
			judges <- struct{}{}
			defer func() { <-judges }()
			if t.Verdict == nil && err == nil {
				if err = context.Cause(ctx); err == nil {
					t.Verdict, err = r.Evaluate(ctx, &t.Job)
				}
			}
			t.Seconds = max(0, r.Now().Sub(t.Started).Seconds())
			done(i, t, err)
		}()
	}
	for _, end := range ends {
		<-end
	}
}
