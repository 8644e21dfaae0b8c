package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// PlanSchema is the version of Plan in JSON.
const PlanSchema = "amkc.plan/1"

// The file of a plan in the directory of a campaign.
const planName = "plan.json"

var planFile = infile.Kind{Name: "a plan", Max: 64 << 20}

// A Plan is a round of trials that wait for nothing but what the campaign has come to: they may be made at once, on
// many machines, in any order.
type Plan struct {
	Schema   string    `json:"schema"`
	Campaign string    `json:"campaign"` // SHA-256 of campaign.json
	Previous string    `json:"previous"` // as in trials: SHA-256 of what the round follows
	First    int       `json:"first"`    // trials before the round
	Trials   []Planned `json:"trials"`
}

// A Planned is a trial that is to be made, called by what it is: the digest of its job, the campaign, and what the
// round follows. Who has the same plan makes the same trial under the same name.
type Planned struct {
	ID string `json:"id"`
	Job
	// Refused stands for what a command has proposed and could not be tried. There is nothing to be made.
	Refused *diag.Diagnostic `json:"refused,omitempty"`
}

// seal names a trial of a plan.
func (p *Plan) seal(t *Planned) {
	t.ID = digestOf(struct {
		Campaign, Previous string
		Job                Job
	}{p.Campaign, p.Previous, t.Job})[:32]
}

// round lists the jobs that can be made at once, or says why there are none: those that Next would give one after
// another as long as nothing becomes of them, and most at most. An error is that of a proposer, or the cause of a
// cancelled context.
func (s *State) round(ctx context.Context, ask func(*State) Asker, most int) (jobs []Planned, stop string, err error) {
	job, stop, err := s.Next()
	if err != nil {
		return nil, "", err
	}
	switch {
	case job == nil:
		if job = s.Confirm(); job == nil {
			return nil, stop, nil
		}
		return []Planned{{Job: *job}}, "", nil
	case job.Role != RoleCandidate:
		p := Planned{Job: *job}
		if job.Settings == nil && asked(job.Proposer) {
			s.fill(ctx, ask(s), &p)
			err = context.Cause(ctx)
		}
		return []Planned{p}, "", err
	case job.Rung != Screen:
		for _, job := range s.promotions() {
			jobs = append(jobs, Planned{Job: *job})
		}
		return jobs[:min(len(jobs), most)], "", nil
	}
	left := s.campaign.Rules.Bracket
	if job.Bracket == s.bracket {
		left -= s.screened()
	}
	left = min(left+s.refusalsAmong(left), most)
	ahead, refused := s.again(), 0
	for job != nil && len(jobs) < left && refused < refusals {
		p := Planned{Job: *job}
		if refused++; job.Settings != nil || ahead.fill(ctx, ask(ahead), &p) {
			refused = 0
		}
		if err := context.Cause(ctx); err != nil {
			return nil, "", err
		}
		jobs = append(jobs, p)
		ahead.Apply(&Trial{Job: p.Job}) // nothing is known of it yet but that it was proposed
		r := rand.New(rand.NewPCG(s.campaign.Seed, uint64(len(ahead.trials))))
		if job, err = ahead.propose(r, job.Bracket); err != nil {
			return nil, "", err
		}
	}
	return jobs, "", nil
}

// refusalsAmong is how many proposals are refused for so many that are not, by what has become of those before; no more
// than these. A round has as many more: otherwise a bracket would wait for another round of builds whenever some of it
// is refused.
func (s *State) refusalsAmong(n int) int {
	proposed, refused := 0, 0
	for i := range s.trials {
		if t := &s.trials[i]; t.Role == RoleCandidate && t.Rung == Screen {
			proposed++
			if t.refused() {
				refused++
			}
		}
	}
	return min(n, n*refused/max(1, proposed-refused))
}

// fill has a command fill in a job, and reports whether it has proposed something that can be tried.
func (s *State) fill(ctx context.Context, ask Asker, p *Planned) bool {
	p.Refused = proposed(ctx, ask, s, &p.Job)
	if p.Refused != nil {
		p.Settings = knobs.Settings{}
	}
	return p.Refused == nil
}

// again is a state of its own that has come to the same.
func (s *State) again() *State {
	a := NewState(s.campaign)
	for i := range s.trials {
		a.Apply(&s.trials[i])
	}
	return a
}

// Plan plans the next round, or returns the plan that is there and not yet merged. A plan without trials says that the
// campaign is at its end; stop is why.
func (j *Journal) Plan(ctx context.Context, ask func(*State) Asker, budget Budget) (p *Plan, stop string, err error) {
	_, digest, err := LoadCampaign(j.dir)
	if err != nil {
		return nil, "", err
	}
	switch p, err := LoadPlan(j.dir); {
	case err == nil && p.Campaign == digest && (p.Previous == j.previous || j.entering(p)):
		return p, "", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, "", err
	}
	p = &Plan{Schema: PlanSchema, Campaign: digest, Previous: j.previous, First: len(j.State.trials)}
	j.State.forever = budget.Forever
	left := math.MaxInt
	if budget.Trials > 0 {
		left = budget.Trials - p.First
	}
	if left <= 0 {
		stop = fmt.Sprintf("%d trials are made", p.First)
		if job := j.State.Confirm(); job != nil {
			p.Trials = []Planned{{Job: *job}}
		}
	} else if p.Trials, stop, err = j.State.round(ctx, ask, left); err != nil {
		return nil, "", err
	}
	if len(p.Trials) == 0 {
		return p, stop, nil
	}
	for i := range p.Trials {
		p.seal(&p.Trials[i])
	}
	return p, "", p.write(j.dir)
}

// write makes the plan that of a campaign's directory.
func (p *Plan) write(dir string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, planName)
	if err := outfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	}); err != nil {
		return diag.Errorf(codeJournal, path, "cannot be written: %s", infile.Reason(err))
	}
	return nil
}

// LoadPlan reads the plan of a campaign. The error is fs.ErrNotExist if there is none.
func LoadPlan(dir string) (*Plan, error) {
	path := filepath.Join(dir, planName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	text, err := infile.Read(path, planFile)
	if err != nil {
		return nil, diag.Errorf(codeJournal, path, "cannot be read: %s", infile.Reason(err))
	}
	var p Plan
	if err := strictJSON(text, &p); err != nil {
		return nil, diag.Errorf(codePlan, path, "is no plan: %s", infile.InJSON(text, err))
	}
	if p.Schema != PlanSchema || len(p.Trials) == 0 {
		return nil, diag.Errorf(codePlan, path, "has the schema %q and %d trials; want %s and a trial", p.Schema,
			len(p.Trials), PlanSchema)
	}
	if p.First < 0 {
		return nil, diag.Errorf(codePlan, path, "follows %d trials; want the file as amkc search plan wrote it",
			p.First)
	}
	for i := range p.Trials {
		t := p.Trials[i]
		if p.seal(&t); t.ID != p.Trials[i].ID {
			return nil, diag.Errorf(codePlan, path, "trial %d is not what its name says; want the file as amkc search "+
				"plan wrote it", i)
		}
	}
	return &p, nil
}
