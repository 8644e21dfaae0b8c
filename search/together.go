package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A Crew makes the trials of a round on one machine, several at a time.
type Crew struct {
	Jobs int                // processes at a time, besides those that measure, in turn
	Ask  func(*State) Asker // asks for a state that a round is planned ahead with
	Told func(done, of int) // after each trial of a round; may be nil
	// Work makes a stage of a trial of the plan in the campaign's directory: that of a Worker.
	Work func(ctx context.Context, dir string, p *Plan, index int, stage Stage) (*Made, error)
	Key  PublicKey
}

// Why a round ends before all of it is made.
var (
	errTimeUp = errors.New("the time is up")
	errSpent  = errors.New("the GPU seconds are spent")
)

// Together carries a campaign on as Run does, in rounds: the configurations that a bracket screens are proposed at once
// and built by several processes, ahead of the one that measures, so that a GPU waits for a compiler at the beginning
// of a round and no longer. Predictions are all made several at a time.
//
// When the budget is spent, what is being made is given up, and what is made is entered. Then the best is confirmed.
func (r *Runner) Together(ctx context.Context, j *Journal, crew *Crew) (stop string, err error) {
	late := ctx
	if r.Budget.Time > 0 {
		var cancel func()
		late, cancel = context.WithTimeoutCause(ctx, r.Budget.Time, errTimeUp)
		defer cancel()
	}
	for stop == "" {
		p, why, err := j.Plan(late, crew.Ask, r.Budget)
		if err == nil && len(p.Trials) == 0 {
			return why, nil // the best is confirmed, if there is one
		}
		if err == nil {
			stop, err = r.round(late, j, p, crew)
		}
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case late.Err() != nil:
			stop = errTimeUp.Error()
		case err != nil:
			return "", err
		}
	}
	return stop, r.confirm(ctx, j)
}

// round makes a round and enters what was made of it. stop is why no other may follow.
func (r *Runner) round(ctx context.Context, j *Journal, p *Plan, crew *Crew) (stop string, err error) {
	left := -1.0 // no limit
	if r.Budget.GPUSeconds > 0 {
		left = max(0, r.Budget.GPUSeconds-j.State.gpuSeconds)
	}
	if err := crew.make(ctx, j.dir, p, j.Campaign.Device, left); errors.Is(err, errSpent) {
		stop = errSpent.Error()
	} else if err != nil && ctx.Err() == nil {
		return "", err
	}
	if err := r.enter(j, p, crew.Key); err != nil {
		return "", err
	}
	if !slices.ContainsFunc(p.Trials, func(t Planned) bool { return t.Refused == nil }) && stop == "" {
		stop = fmt.Sprintf("proposals that could not be tried, one after another: %d", len(p.Trials))
	}
	return stop, nil
}

// enter enters what was made of a round, and leaves the rest out of its plan. A round of which nothing was made stays
// planned, for another run.
func (r *Runner) enter(j *Journal, p *Plan, key PublicKey) error {
	made, err := madeIn(j.dir)
	if err != nil {
		return err
	}
	all := len(p.Trials)
	p.Trials = slices.DeleteFunc(p.Trials, func(t Planned) bool {
		return t.Refused == nil && !slices.Contains(made, madePath(j.dir, t.ID))
	})
	if len(p.Trials) == 0 {
		return nil
	}
	if len(p.Trials) < all {
		if err := p.write(j.dir); err != nil {
			return err
		}
	}
	first := len(j.State.trials)
	_, err = j.Merge(nil, key)
	for i := range j.State.trials[first:] {
		r.tell(j.State, &j.State.trials[first+i])
	}
	return err
}

// confirm does what is left to do when a search ends.
func (r *Runner) confirm(ctx context.Context, j *Journal) error {
	for job := j.State.Confirm(); job != nil; job = j.State.Confirm() {
		t, err := r.make(ctx, j, job)
		if err != nil {
			return err
		}
		if err := j.Append(t); err != nil {
			return err
		}
		r.tell(j.State, t)
	}
	return nil
}

func (r *Runner) tell(s *State, t *Trial) {
	if r.Tell != nil {
		r.Tell(s, t)
	}
}

// make makes the trials of a plan until all are made, one fails, the context ends, or so many seconds of the GPU are
// spent, if that is not negative.
func (c *Crew) make(ctx context.Context, dir string, p *Plan, device string, seconds float64) error {
	if seconds == 0 {
		return errSpent
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	done, spent := 0, 0.0
	// do makes a stage, and reports whether there is something left to be done for the trial.
	do := func(index int, stage Stage) (more bool) {
		if ctx.Err() != nil {
			return false
		}
		made, err := c.Work(ctx, dir, p, index, stage)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			cancel(err)
			return false
		}
		if made == nil {
			return true
		}
		if done++; c.Told != nil {
			c.Told(done, len(p.Trials))
		}
		if spent += made.Verdict.GPUSeconds; seconds > 0 && spent >= seconds {
			cancel(errSpent)
		}
		return false
	}
	planned, built := make(chan int), make(chan int, len(p.Trials))
	var builders, judges sync.WaitGroup
	for range c.Jobs {
		builders.Go(func() {
			for index := range planned {
				switch {
				case device != DeviceCUDA:
					do(index, StageJudge)
				case p.Trials[index].Rung != Screen: // it was built to be screened
					built <- index
				case do(index, StageBuild):
					built <- index
				}
			}
		})
	}
	// While one measures, the next one proves and finds its builds.
	for range 2 {
		judges.Go(func() {
			for index := range built {
				do(index, StageJudge)
			}
		})
	}
	for index := range p.Trials {
		if p.Trials[index].Refused == nil {
			planned <- index
		}
	}
	close(planned)
	builders.Wait()
	close(built)
	judges.Wait()
	return context.Cause(ctx)
}
