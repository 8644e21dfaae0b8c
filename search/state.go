package search

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"amkc/knobs"
)

// State is the state of a campaign: a fold over its trials alone. It is the same whether the campaign ran without
// interruption or was killed and resumed.
type State struct {
	campaign *Campaign
	trials   []Trial
	seconds  float64
	// gpuSeconds are those of trials other than confirmations: what the search itself has taken.
	gpuSeconds float64

	incumbents []knobs.Settings          // the start, and what has replaced it since, the last of which counts
	score      map[string]float64        // by id: the logarithm of the time relative to the start, where it is known
	named      map[string]knobs.Settings // by id: all that were proposed
	looks      []*Trial                  // the screenings of the last round
	finals     map[string]bool           // by id: of these, what was judged in full

	errors  map[string]float64 // by a value of a knob: how far predictions with it are off, as a logarithm
	passed  map[string]bool    // values of knobs, of a trial that holds
	crashes map[string]int     // by a value of a knob, and how it ended
	retired map[string]string
	found   map[Class]int
	reasons map[string]int // of rejections, by code
}

// NewState returns the state of a campaign without trials.
func NewState(c *Campaign) *State {
	return &State{campaign: c, incumbents: []knobs.Settings{c.Start}, score: map[string]float64{IDOf(c.Start): 0},
		named: map[string]knobs.Settings{IDOf(c.Start): c.Start}, finals: map[string]bool{},
		errors: map[string]float64{}, passed: map[string]bool{}, crashes: map[string]int{},
		retired: map[string]string{}, found: map[Class]int{}, reasons: map[string]int{}}
}

// incumbent is what proposals start from and are measured against.
func (s *State) incumbent() knobs.Settings { return s.incumbents[len(s.incumbents)-1] }

// Apply adds a trial.
func (s *State) Apply(t *Trial) {
	s.trials = append(s.trials, *t)
	t = &s.trials[len(s.trials)-1]
	v := t.Verdict
	s.seconds += t.Seconds
	s.named[v.ID] = t.Settings
	s.found[v.Class]++
	if !v.Class.Holds() {
		s.reasons[v.Reason.Code]++
	}
	s.count(t)
	s.learn(v)
	if t.Role == RoleConfirm {
		// What a fresh measurement does not show was a draw of luck: the one before takes its place again.
		if v.Class.Holds() && !v.Better() && v.ID == IDOf(s.incumbent()) && len(s.incumbents) > 1 {
			s.incumbents = s.incumbents[:len(s.incumbents)-1]
		}
		return
	}
	s.gpuSeconds += v.GPUSeconds
	if t.Role == RoleCandidate && t.Rung == Screen {
		if len(s.looks) == 0 || s.looks[0].Round != t.Round {
			s.looks, s.finals = nil, map[string]bool{}
		}
		s.looks = append(s.looks, t)
	}
	if t.Role == RoleStart {
		return
	}
	if v.Class.Holds() && v.ID != v.BaselineID {
		s.score[v.ID] = s.score[v.BaselineID] + math.Log(v.Ratio.Mean)
	}
	if t.Rung == Final && t.Role == RoleCandidate {
		s.finals[v.ID] = true
	}
	if t.Accepted {
		s.incumbents = append(s.incumbents, t.Settings)
	}
}

// Accepts reports whether a trial, before it is recorded, makes its candidate the incumbent.
func (s *State) Accepts(t *Trial) bool {
	return t.Rung == Final && (t.Role == RoleCandidate || t.Role == RoleRecorded) &&
		IDOf(t.Against) == IDOf(s.incumbent()) && s.campaign.Rules.moves(t.Verdict)
}

// count retires values of knobs with which trials fail in the same way again and again, and none of a trial that
// holds. A refusal says why and costs nothing, and so retires nothing, except a build that takes too long.
func (s *State) count(t *Trial) {
	v := t.Verdict
	if v.Class == Rejected && v.Reason.Code != codeSlowBuild.ID {
		return
	}
	for path, value := range t.Settings {
		what := path + "=" + string(value)
		if v.Class.Holds() {
			s.passed[what] = true
			delete(s.retired, what)
		}
		if v.Class.Holds() || t.Against[path] == value || s.passed[what] {
			continue
		}
		key := what + " " + string(v.Class) + " " + v.Reason.Code
		if s.crashes[key]++; s.crashes[key] >= s.campaign.Rules.Crashes {
			s.retired[what] = string(v.Class) + " " + v.Reason.Code
		}
	}
}

// learnRate is which part of an error of a prediction is put down to the values that candidate and baseline do not
// share. On the published campaigns each verdict is predicted best by those before it with 0.5 (docs/search.md).
const learnRate = 0.5

// learn corrects predictions by what was measured: the same error is not made again and again.
func (s *State) learn(v *Verdict) {
	if v.Timing == nil || v.Device != DeviceCUDA {
		return
	}
	wrong, n := 0.0, 0.0
	for _, at := range v.At {
		if p := at.Predicted; p != nil && p.Candidate > 0 && p.Baseline > 0 {
			wrong += math.Log(at.Ratio.Mean) - math.Log(p.Candidate/p.Baseline)
			n++
		}
	}
	apart := s.apart(v.Settings, v.Baseline)
	if n == 0 || len(apart) == 0 {
		return
	}
	step := learnRate * (wrong/n - s.correction(v.Settings, v.Baseline)) / float64(len(apart))
	for what, sign := range apart {
		s.errors[what] += step * sign
	}
}

// correction is what is added to the logarithm of a predicted ratio.
func (s *State) correction(of, from knobs.Settings) float64 {
	sum, apart := 0.0, s.apart(of, from)
	for _, what := range slices.Sorted(maps.Keys(apart)) { // in one order, so that the sum has the same bits
		sum += apart[what] * s.errors[what]
	}
	return sum
}

// apart is by which values of knobs settings differ, defaults included: 1 for a value of the first, -1 for one of the
// others.
func (s *State) apart(of, from knobs.Settings) map[string]float64 {
	x := map[string]float64{}
	for i := range s.campaign.Space.Knobs {
		k := &s.campaign.Space.Knobs[i]
		if is, was := k.value(of), k.value(from); is != was {
			x[k.Path+"="+string(is)], x[k.Path+"="+string(was)] = 1, -1
		}
	}
	return x
}

// promoted is the next candidate of the round that is judged in full: of those that are promising at the first look
// the best, up to a number of them. It is nil where there is none, and once one has replaced the incumbent.
func (s *State) promoted() *Job {
	if len(s.looks) == 0 || len(s.looks) < s.looks[0].Of || !s.current() || len(s.finals) >= s.campaign.Rules.Finals {
		return nil
	}
	promising := slices.DeleteFunc(slices.Clone(s.looks), func(t *Trial) bool {
		return t.Verdict.Decision != Promising || s.finals[t.Verdict.ID]
	})
	if len(promising) == 0 {
		return nil
	}
	best := slices.MinFunc(promising, func(a, b *Trial) int {
		return cmp.Compare(a.Verdict.Ratio.Mean, b.Verdict.Ratio.Mean)
	})
	job := best.Job
	job.N, job.Rung, job.Of = len(s.trials), Final, 0
	return &job
}

// current reports whether the looks of the round are at the incumbent.
func (s *State) current() bool { return IDOf(s.looks[0].Against) == IDOf(s.incumbent()) }

// possible is the most that the incumbent can still gain, waiting for nothing any more, and the least gain that counts.
func (s *State) possible() (gain, least float64) {
	id := IDOf(s.incumbent())
	for i := range slices.Backward(s.trials) {
		v := s.trials[i].Verdict
		if !v.Class.Holds() || v.Rung != Final || v.ID != id || s.trials[i].Role == RoleConfirm || v.disturbed() {
			continue
		}
		for _, at := range v.At {
			gain += (1 - at.floor()/at.Candidate.Median) / float64(len(v.At))
		}
		return gain, v.Threshold
	}
	return 1, 0
}

// floor is what no configuration is expected to go below: the ceiling, which is that of the candidate's own ring, and
// the plain read of as many bytes, where that is less; a ring that has little in flight has a ceiling far above it.
func (a *At) floor() float64 {
	if a.ReadGBs <= 0 {
		return a.Ceiling
	}
	return min(a.Ceiling, a.Bytes/a.ReadGBs/1e3)
}

// ended says why a search is at its end, or nothing.
func (s *State) ended() string {
	if start := s.trials[0].Verdict; !start.Class.Holds() {
		return fmt.Sprintf("the start is %s: %s", start.Class, placed(start.Reason))
	}
	if gain, least := s.possible(); gain < least {
		return fmt.Sprintf("the best possible gain, %.2f %%, is below what counts, %.2f %%", 100*gain, 100*least)
	}
	return ""
}

// Confirm returns the last job of a search: the incumbent against the start, in a fresh process at held-out positions.
// It returns nil if that was done, or if nothing has replaced the start.
func (s *State) Confirm() *Job {
	if len(s.incumbents) == 1 || s.Confirmed() != nil {
		return nil
	}
	return &Job{N: len(s.trials), Role: RoleConfirm, Rung: Final, Round: s.round(), Settings: s.incumbent(),
		Against: s.campaign.Start}
}

// round is the number of the last round.
func (s *State) round() int {
	if len(s.looks) == 0 {
		return 0
	}
	return s.looks[0].Round
}

// Best returns the settings of the incumbent, and an estimate of its time relative to the start, the product of
// measured ratios. The number to report is that of the trial that confirms it.
func (s *State) Best() (knobs.Settings, float64) {
	return maps.Clone(s.incumbent()), math.Exp(s.score[IDOf(s.incumbent())])
}

// Confirmed returns the trial that was to confirm the incumbent, or nil; its verdict says whether it did.
func (s *State) Confirmed() *Trial { return s.confirmation(IDOf(s.incumbent())) }

// Refuted returns the last confirmation that reverted the incumbent, or nil.
func (s *State) Refuted() *Trial {
	if t := s.confirmation(""); t != nil && t.Verdict.Class.Holds() && !t.Verdict.Better() {
		return t
	}
	return nil
}

// confirmation returns the last trial that was to confirm something, or settings with an id.
func (s *State) confirmation(id string) *Trial {
	for i := range slices.Backward(s.trials) {
		if t := &s.trials[i]; t.Role == RoleConfirm && (id == "" || t.Verdict.ID == id) {
			return t
		}
	}
	return nil
}

// Trials returns all trials in order. Callers must not modify them.
func (s *State) Trials() []Trial { return s.trials }

// Campaign returns the campaign of the trials. Callers must not modify it.
func (s *State) Campaign() *Campaign { return s.campaign }
