package search

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// Merged is what a merge has come to.
type Merged struct {
	Made    int   `json:"made"`    // trials that were made, of all rounds, in the directory after the merge
	Added   int   `json:"added"`   // of them, those that came from other directories
	Planned int   `json:"planned"` // trials of the round
	Missing []int `json:"missing"` // of them, indices of those that were not made yet
	Entered int   `json:"entered"` // trials that were added to trials.jsonl: the whole round, or none
}

// Merge makes the made trials of other directories those of this one too, and enters the round of the plan into the
// trials as soon as all of it is there. It is set union: it does not matter in which order directories are merged, how
// often, or how often a trial was made. Where one was made twice, the one of the smaller digest stays, whatever it
// says.
//
// A campaign's journal must be open. Every trial has to be of this campaign and signed with the key.
func (j *Journal) Merge(from []string, key PublicKey) (*Merged, error) {
	c, digest, err := LoadCampaign(j.dir)
	if err != nil {
		return nil, err
	}
	if err := c.Signs(key); err != nil {
		return nil, err
	}
	m := &Merged{Missing: []int{}}
	for _, dir := range from {
		if _, err := os.Stat(dir); err != nil {
			return nil, diag.Errorf(codeJournal, dir, "cannot be read: %s", infile.Reason(err))
		}
		paths, err := madeIn(dir)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if err := j.take(m, path, digest, key); err != nil {
				return nil, err
			}
		}
	}
	paths, err := madeIn(j.dir)
	if err != nil {
		return nil, err
	}
	m.Made = len(paths)
	return m, j.enter(m, digest, key)
}

// load reads a trial that was made, which has to be of the campaign.
func (j *Journal) load(path, digest string, key PublicKey) (*Made, error) {
	made, err := loadMade(path, key)
	if err != nil {
		return nil, err
	}
	if made.Campaign != digest {
		return nil, diag.Errorf(codeOther, path, "is of another campaign; want trials of the plans of this one")
	}
	return made, j.Campaign.verdictFor(&made.Job, made.Verdict)
}

// take makes a trial of another directory one of the campaign's.
func (j *Journal) take(m *Merged, path, digest string, key PublicKey) error {
	made, err := j.load(path, digest, key)
	if err != nil {
		return err
	}
	old, err := j.load(madePath(j.dir, made.ID), digest, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m.Added++
	case err != nil:
		return err
	case digestOf(old) <= digestOf(made):
		return nil
	}
	return made.write(j.dir, true)
}

// enter adds the round of the plan to the trials, if all of it is made and it is not there yet.
func (j *Journal) enter(m *Merged, digest string, key PublicKey) error {
	p, err := LoadPlan(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Campaign != digest {
		return diag.Errorf(codeOther, filepath.Join(j.dir, planName), "is of another campaign; want a plan of this one")
	}
	m.Planned = len(p.Trials)
	switch {
	case p.Previous == j.previous && p.First != len(j.State.trials):
		return diag.Errorf(codePlan, filepath.Join(j.dir, planName), "follows %d trials, and there are %d; want the "+
			"file as amkc search plan wrote it", p.First, len(j.State.trials))
	case p.Previous != j.previous && !j.entering(p):
		return nil // the trials have gone on: the round is among them, or it is of a past that was left
	}
	var round []*Trial
	for i := range p.Trials {
		t := &Trial{Job: p.Trials[i].Job, Refused: p.Trials[i].Refused}
		made, err := j.load(madePath(j.dir, p.Trials[i].ID), digest, key)
		switch {
		case err == nil:
			t.Verdict, t.Started, t.Seconds = made.Verdict, made.Started, made.Seconds
		case !errors.Is(err, fs.ErrNotExist):
			return err
		case t.Refused == nil:
			m.Missing = append(m.Missing, i)
		}
		round = append(round, t)
	}
	if len(m.Missing) > 0 {
		return nil
	}
	// Final verdicts are all against one incumbent, and the first that is accepted takes its place: so the best first.
	slices.SortStableFunc(round, func(a, b *Trial) int { return cmp.Compare(rankInRound(a), rankInRound(b)) })
	// Of a merge that was killed; the order may have been another then, but for refusals, which have no settings.
	entered, refused := map[string]bool{}, 0
	for i := range j.State.trials[p.First:] {
		if t := &j.State.trials[p.First+i]; t.Refused != nil {
			refused++
		} else {
			entered[IDOf(t.Settings)] = true
		}
	}
	for _, t := range round {
		switch {
		case t.Refused != nil && refused > 0:
			refused--
			continue
		case t.Refused == nil && entered[IDOf(t.Settings)]:
			continue
		}
		t.N = len(j.State.trials)
		if err := j.Append(t); err != nil {
			return err
		}
		m.Entered++
	}
	return nil
}

// entering reports whether the trials end within the round of a plan: a process was killed while it entered it.
func (j *Journal) entering(p *Plan) bool {
	trials := j.State.trials
	in := len(trials) - p.First
	return in > 0 && in < len(p.Trials) && trials[p.First].Previous == p.Previous
}

func rankInRound(t *Trial) float64 {
	if t.Rung != Final || t.Verdict == nil || t.Verdict.Timing == nil {
		return 0
	}
	return t.Verdict.Ratio.Mean
}
