package search

import (
	"context"
	"fmt"
	"time"

	"amkc/ir/diag"
	"amkc/knobs"
)

// An Evaluator makes the verdict on a job, at the positions of the campaign. An error ends the search: it is for what
// no configuration is to blame for.
type Evaluator func(ctx context.Context, j *Job) (*Verdict, error)

// A Proposal is what a command proposes: settings, by path, and why. It has no field for a time: a proposer that states
// one is refused.
type Proposal struct {
	Settings knobs.Settings `json:"settings"`
	Why      string         `json:"why"`
}

// An Asker has a command propose settings for a job.
type Asker func(ctx context.Context, j *Job) (*Proposal, error)

// Budget is when a run of a search ends. What is 0 is no limit.
type Budget struct {
	Trials  int           // of the campaign, earlier runs included
	Time    time.Duration // of this run
	Forever bool          // hops go on, whether they lead to anything or not
	// GPUSeconds are those of the campaign, earlier runs included, and without those of confirming the best.
	GPUSeconds float64
}

// Runner carries a campaign on.
type Runner struct {
	Evaluate Evaluator
	Ask      Asker // may be nil where no proposer is a command
	Budget   Budget
	Now      func() time.Time
	Tell     func(s *State, t *Trial) // after each trial
}

// refusals is how many proposals of a command, one after another, may be none before a run ends.
const refusals = 3

// Run makes trials until the budget is spent or nothing is left to do, then confirms the best, and says why it ended.
func (r *Runner) Run(ctx context.Context, j *Journal) (stop string, err error) {
	j.State.forever = r.Budget.Forever
	began, refused := r.Now(), 0
	for {
		switch {
		case stop != "": // what is left is to confirm the best
		case r.Budget.Trials > 0 && len(j.State.trials) >= r.Budget.Trials:
			stop = fmt.Sprintf("%d trials are made", len(j.State.trials))
		case r.Budget.Time > 0 && r.Now().Sub(began) >= r.Budget.Time:
			stop = errTimeUp.Error()
		case r.Budget.GPUSeconds > 0 && j.State.gpuSeconds >= r.Budget.GPUSeconds:
			stop = errSpent.Error()
		case refused >= refusals:
			stop = fmt.Sprintf("proposals that could not be tried, one after another: %d", refused)
		}
		var job *Job
		if stop == "" {
			if job, stop, err = j.State.Next(); err != nil {
				return "", err
			}
		}
		if stop != "" {
			if job = j.State.Confirm(); job == nil {
				return stop, nil
			}
		}
		t, err := r.make(ctx, j, job)
		if err != nil {
			return "", err
		}
		if refused++; t.Refused == nil {
			refused = 0
		}
		if err := j.Append(t); err != nil {
			return "", err
		}
		r.tell(j.State, t)
	}
}

// make makes a trial.
func (r *Runner) make(ctx context.Context, j *Journal, job *Job) (*Trial, error) {
	t := &Trial{Job: *job, Started: r.Now().UTC().Truncate(time.Millisecond)}
	if job.Settings == nil && asked(job.Proposer) {
		if t.Refused = proposed(ctx, r.Ask, j.State, &t.Job); t.Refused != nil {
			t.Settings = knobs.Settings{}
			t.Seconds = r.Now().Sub(t.Started).Seconds()
			return t, context.Cause(ctx)
		}
	}
	v, err := r.Evaluate(ctx, &t.Job)
	if err != nil {
		return nil, err
	}
	if err := j.Campaign.verdictFor(&t.Job, v); err != nil {
		return nil, err
	}
	t.Verdict = v
	t.Seconds = max(0, r.Now().Sub(t.Started).Seconds())
	return t, nil
}

// proposed has a command fill in a job. What it returns is why nothing that could be tried was proposed.
func proposed(ctx context.Context, ask Asker, s *State, job *Job) *diag.Diagnostic {
	p, err := ask(ctx, job)
	if err != nil {
		return asDiagnostic(err)
	}
	if _, err := p.Settings.Config(); err != nil {
		return asDiagnostic(err)
	}
	if !s.mayTry(p.Settings) {
		return diag.Errorf(codeProposal, job.Proposer, "%s was proposed before, or has a value that is retired; want "+
			"settings that are new", IDOf(p.Settings))
	}
	job.Settings, job.Why = p.Settings, p.Why
	return nil
}
