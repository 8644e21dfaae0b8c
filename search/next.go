package search

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"amkc/knobs"
)

// Next returns the job that follows from the trials so far, or why there is none. It changes nothing: what a job
// changes is in its trial. An error is that of a proposer.
func (s *State) Next() (job *Job, stop string, err error) {
	c := s.campaign
	if len(s.trials) == 0 {
		return &Job{Role: RoleStart, Rung: Final, Settings: c.Start, Against: c.Start}, "", nil
	}
	if start := s.trials[0].Verdict; !start.Class.Holds() {
		return nil, fmt.Sprintf("the start is %s: %s", start.Class, placed(start.Reason)), nil
	}
	if gain, least := s.possible(); gain < least {
		return nil, fmt.Sprintf("the best possible gain, %.2f %%, is below what counts, %.2f %%", 100*gain, 100*least),
			nil
	}
	if times := s.overDefaults(); times >= enough {
		return nil, fmt.Sprintf("the best is %.2f times as fast as the defaults, and %d times is enough", times,
			enough), nil
	}
	r := rand.New(rand.NewPCG(c.Seed, uint64(len(s.trials))))
	if job := s.promotion(); job != nil {
		return job, "", nil
	}
	bracket, barren := s.bracket, s.barren
	if s.complete() {
		if s.ripe() {
			return s.challenge(), "", nil
		}
		bracket++
		if !s.accepted {
			barren++
		}
	}
	if !s.left(barren) {
		job, err := s.propose(r, bracket)
		if job != nil || err != nil {
			return job, "", err
		}
		// Nothing more can be proposed: what was screened goes on, if there is any.
		if job := s.promoted(); job != nil {
			return job, "", nil
		}
	}
	if !s.settled && IDOf(s.local) != IDOf(s.best) {
		return s.challenge(), "", nil
	}
	if c.Rules.Hops > 0 && !s.forever && s.hops >= c.Rules.Hops {
		return nil, fmt.Sprintf("%d hops, one after another, have led to nothing better", s.hops), nil
	}
	if job := s.hop(r); job != nil {
		return job, "", nil
	}
	return nil, "everything that is in reach was tried", nil
}

// Confirm returns what is left to do when a search ends: the incumbent of a basin that seems better than the best
// challenges it; then the best is confirmed in a fresh process at held-out positions. It returns nil if that was done,
// or if there is nothing better than the start. Of a stage the best is confirmed in the step: where that does not show
// it, what was the best before is, and so on.
func (s *State) Confirm() *Job {
	if !s.settled && IDOf(s.local) != IDOf(s.best) && s.score[IDOf(s.local)] < s.score[IDOf(s.best)] {
		return s.challenge()
	}
	for _, best := range slices.Backward(s.bests) {
		switch t := s.confirmed(best); {
		case t == nil:
			return &Job{N: len(s.trials), Role: RoleConfirm, Rung: Final, Basin: s.basin, Bracket: s.bracket,
				Settings: best, Against: s.campaign.Start}
		case s.campaign.Stage == "" || t.Accepted:
			return nil
		}
	}
	return nil
}

// shown times the least gain that counts is a gain that most final verdicts show: their interval takes about half of
// what counts.
const shown = 1.5

// ripe reports whether the incumbent of the basin, which has not challenged the best, seems to gain enough for a
// verdict to show it.
func (s *State) ripe() bool {
	return !s.settled && s.score[IDOf(s.local)] < s.score[IDOf(s.best)]+math.Log(1-shown*s.campaign.Rules.MinGain)
}

// challenge is the incumbent of the basin against the best.
func (s *State) challenge() *Job {
	return &Job{N: len(s.trials), Role: RoleChallenge, Rung: Final, Basin: s.basin, Bracket: s.bracket,
		Settings: s.local, Against: s.best}
}

// possible is the most that the best can still gain, waiting for nothing any more, and the least gain that counts.
func (s *State) possible() (gain, least float64) {
	id := IDOf(s.best)
	for i := range slices.Backward(s.trials) {
		v := s.trials[i].Verdict
		if v == nil || !v.Class.Holds() || v.Rung != Final || v.ID != id || s.trials[i].Role == RoleConfirm ||
			v.disturbed() {
			continue
		}
		for _, at := range v.At {
			gain += (1 - at.floor()/at.Candidate.Median) / float64(len(v.At))
		}
		return gain, v.Threshold
	}
	return 1, 0
}

// overDefaults is how many times as fast as the defaults the best is; 0 where the defaults were not tried.
func (s *State) overDefaults() float64 {
	defaults, known := s.score[IDOf(knobs.Settings{})]
	if !known {
		return 0
	}
	return math.Exp(defaults - s.score[IDOf(s.best)])
}

// floor is what no configuration is expected to go below: the ceiling, which is that of the candidate's own ring, and
// the plain read of as many bytes, where that is less; a ring that has little on its way has a ceiling far above it.
func (a *At) floor() float64 {
	if a.ReadGBs <= 0 {
		return a.Ceiling
	}
	return min(a.Ceiling, a.Bytes/a.ReadGBs/1e3)
}

// complete reports whether nothing of the bracket is left to be done.
func (s *State) complete() bool {
	return s.screened() >= s.campaign.Rules.Bracket && s.promoted() == nil
}

// mostRefused is how many refusals a bracket has room for, in brackets.
const mostRefused = 2

// screened is how many configurations of the bracket were screened. One that is refused takes no place, since it takes
// no time of a GPU, until there are too many.
func (s *State) screened() int {
	n, refused := 0, 0
	for _, t := range s.results[Screen] {
		if t.refused() {
			refused++
		} else {
			n++
		}
	}
	return n + max(0, refused-mostRefused*s.campaign.Rules.Bracket)
}

// refused reports whether a rule refuses what was proposed, or nothing was. One that is planned is not refused yet.
func (t *Trial) refused() bool {
	return t.Refused != nil || t.Verdict != nil && t.Verdict.Class == Rejected
}

// promotion is the next job of a bracket whose screening is complete.
func (s *State) promotion() *Job {
	if s.screened() < s.campaign.Rules.Bracket {
		if len(s.results[Race]) == 0 { // else screening had come to its end for want of proposals
			return nil
		}
	}
	return s.promoted()
}

// promoted is the next candidate of the bracket that is to be asked more, or nil.
func (s *State) promoted() *Job {
	if all := s.promotions(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// obvious is a gain at the first look that is far more than where builds lie in memory accounts for: what has it is
// judged in full at once, and the rest of the bracket waits.
const obvious = 0.04

// promotions lists the candidates of the bracket that are to be asked more, all at one rung. One in Eta goes on from
// each rung, and at least one, of those that are promising.
func (s *State) promotions() []*Job {
	for i, from := range Rungs[:len(Rungs)-1] {
		to := Rungs[i+1]
		results := slices.Clone(s.results[from])
		results = slices.DeleteFunc(results, (*Trial).refused)
		few := (len(results) + s.campaign.Rules.Eta - 1) / s.campaign.Rules.Eta
		results = slices.DeleteFunc(results, func(t *Trial) bool {
			return t.Verdict == nil || t.Verdict.Decision != Promising
		})
		slices.SortStableFunc(results, func(a, b *Trial) int {
			return cmp.Compare(a.Verdict.Ratio.Mean, b.Verdict.Ratio.Mean)
		})
		if from == Screen && len(results) > 0 && results[0].Verdict.Ratio.Mean < 1-obvious {
			results, to = results[:1], Final
		}
		var jobs []*Job
		for _, t := range results[:min(few, len(results))] {
			done := slices.ContainsFunc(s.results[to],
				func(of *Trial) bool { return IDOf(of.Settings) == IDOf(t.Settings) })
			if !done {
				job := t.Job
				job.N, job.Rung, job.Against = len(s.trials)+len(jobs), to, s.local
				jobs = append(jobs, &job)
			}
		}
		if len(jobs) > 0 {
			return jobs
		}
	}
	return nil
}

// left reports whether the basin is done with: too many brackets without a gain, or no region that is worth a trial.
func (s *State) left(barren int) bool {
	return barren >= s.campaign.Rules.Barren || len(s.openRegions()) == 0
}

// hop is the first trial of a new basin: the best, with a few knobs elsewhere. Where the campaign asks predictions,
// they choose among several draws, so that a basin seldom begins where everything is slow.
func (s *State) hop(r *rand.Rand) *Job {
	job := &Job{N: len(s.trials), Role: RoleHop, Rung: Screen, Basin: s.lastBasin() + 1, Bracket: s.lastBracket() + 1,
		Proposer: proposeHop, Against: s.best}
	for _, proposer := range []string{proposePrior, proposeCost} {
		if slices.Contains(s.campaign.Proposers, proposer) {
			job.Proposer = proposer
			return job // who makes the trial asks
		}
	}
	for range attempts {
		if job.Settings, job.Region = s.hopped(r); s.mayTry(job.Settings) {
			return job
		}
	}
	return nil
}

// hopped moves three to five knobs of the best.
func (s *State) hopped(r *rand.Rand) (to knobs.Settings, region string) {
	space := s.campaign.Space
	to = maps.Clone(s.best)
	for range 3 + r.IntN(3) {
		k := &space.Knobs[r.IntN(len(space.Knobs))]
		to, region = k.with(to, draw(r, k)), k.Region
	}
	return to, region
}

func (s *State) lastBasin() int   { return s.trials[len(s.trials)-1].Basin }
func (s *State) lastBracket() int { return s.trials[len(s.trials)-1].Bracket }

// mayTry reports whether settings are new and have no value that was retired.
func (s *State) mayTry(to knobs.Settings) bool {
	if _, tried := s.named[IDOf(to)]; tried {
		return false
	}
	for i := range s.campaign.Space.Knobs {
		k := &s.campaign.Space.Knobs[i]
		v := k.value(to)
		if s.retired[k.Path+"="+string(v)] != "" || s.campaign.SameBits && k.Order && v != k.value(s.campaign.Start) {
			return false
		}
	}
	return true
}
