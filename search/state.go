package search

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"amkc/knobs"
)

// State is what a campaign has come to: a fold over its trials, and nothing besides. What follows from it is the same
// whether the campaign ran in one piece or was killed a hundred times.
type State struct {
	campaign *Campaign
	trials   []Trial
	forever  bool // hops go on whatever they lead to; nothing of a trial
	seconds  float64
	// gpuSeconds are those of trials but for what confirms the best: what the search itself has taken.
	gpuSeconds float64

	best  knobs.Settings
	bests []knobs.Settings   // that have been the best, one after another, but for the start
	score map[string]float64 // by id: the logarithm of the time relative to the start, as far as it is known
	hops  int                // since the best last changed

	basin    int            // number
	local    knobs.Settings // its incumbent
	barren   int            // brackets of it without an acceptance
	accepted bool           // one in the bracket that is open
	settled  bool           // its incumbent has challenged the best

	bracket   int
	combining int               // the last bracket that a combination was proposed for
	results   map[Rung][]*Trial // of the bracket

	named   map[string]knobs.Settings // by id: all that were proposed
	regions map[string]*regionState
	passed  map[string]bool // values of knobs, of a trial that holds
	crashes map[string]int  // by a value of a knob, and how it ended
	retired map[string]string
	found   map[Class]int
	reasons map[string]int // of rejections, by code
}

// regionState is what became of the trials in a region.
type regionState struct {
	trials, accepted, fruitless int
}

// NewState returns that of a campaign without trials.
func NewState(c *Campaign) *State {
	s := &State{campaign: c, best: c.Start, local: c.Start, score: map[string]float64{IDOf(c.Start): 0},
		results: map[Rung][]*Trial{}, named: map[string]knobs.Settings{IDOf(c.Start): c.Start},
		regions: map[string]*regionState{}, passed: map[string]bool{}, crashes: map[string]int{},
		retired: map[string]string{}, found: map[Class]int{}, reasons: map[string]int{}}
	for _, k := range c.Space.Knobs {
		s.regions[k.Region] = &regionState{}
	}
	return s
}

// Apply adds a trial. It sets what follows from the verdict: incumbents, scores and counts.
func (s *State) Apply(t *Trial) {
	s.trials = append(s.trials, *t)
	t = &s.trials[len(s.trials)-1]
	s.seconds += t.Seconds
	s.named[IDOf(t.Settings)] = t.Settings
	if t.Proposer == proposeCombine {
		s.combining = t.Bracket
	}
	if t.Verdict == nil {
		return
	}
	v := t.Verdict
	if t.Role != RoleConfirm {
		s.gpuSeconds += v.GPUSeconds
	}
	s.found[v.Class]++
	if !v.Class.Holds() {
		s.reasons[v.Reason.Code]++
	}
	s.count(t)
	if t.Role == RoleStart || t.Role == RoleConfirm {
		return
	}
	if v.Class.Holds() && v.ID != v.BaselineID {
		s.score[v.ID] = s.score[v.BaselineID] + math.Log(v.Ratio.Mean)
	}
	s.judge(t)
}

// Outcome is what a trial leads to, before it is written down.
func (s *State) Outcome(t *Trial) (accepted, best bool) {
	v := t.Verdict
	if v == nil || !v.Class.Holds() {
		return false, false
	}
	better := v.Better()
	switch t.Role {
	case RoleCandidate:
		// Those that were made at once were against one incumbent, and only one can take its place.
		accepted = (better || s.campaign.Rules.steps(v)) && IDOf(t.Against) == IDOf(s.local)
		return accepted, accepted && better && IDOf(t.Against) == IDOf(s.best)
	case RoleHop:
		return v.Ratio.Mean < farthestHop, false
	case RoleChallenge, RoleRecorded:
		return false, better && IDOf(t.Against) == IDOf(s.best)
	case RoleConfirm:
		return better && s.campaign.Stage != "", false
	}
	return false, false
}

// farthestHop is how much slower than the best a new basin may begin.
const farthestHop = 1.5

// judge moves incumbents by a trial, which says itself what it has led to.
func (s *State) judge(t *Trial) {
	switch {
	case t.Role == RoleHop:
		if t.Accepted {
			s.basin, s.local, s.barren, s.settled = t.Basin, t.Settings, 0, false
			s.open(t.Bracket)
			for _, r := range s.regions {
				r.fruitless = 0
			}
			s.hops++
		}
	case t.Role == RoleChallenge:
		s.settled = true
	case t.Role == RoleCandidate:
		s.enter(t)
	}
	if t.Best {
		if IDOf(s.local) == IDOf(s.best) {
			s.local = t.Settings
		}
		s.best, s.bests, s.hops = t.Settings, append(s.bests, t.Settings), 0
	}
}

// open begins a bracket.
func (s *State) open(bracket int) {
	s.bracket, s.results, s.accepted = bracket, map[Rung][]*Trial{}, false
}

// enter adds a candidate to its bracket.
func (s *State) enter(t *Trial) {
	if t.Bracket != s.bracket {
		if !s.accepted {
			s.barren++
		}
		s.open(t.Bracket)
	}
	s.results[t.Rung] = append(s.results[t.Rung], t)
	r := s.regions[t.Region]
	if r == nil { // a proposer from outside may say what it likes
		r = &regionState{}
	}
	if t.Rung == Screen {
		r.trials++
		if t.Verdict != nil && t.Verdict.Class != Rejected { // a refusal says nothing of the region
			r.fruitless++
		}
	}
	if t.Accepted {
		s.local, s.accepted, s.barren, s.settled = t.Settings, true, 0, false
		r.accepted++
		for _, of := range s.regions {
			of.fruitless = 0
		}
	}
}

// count retires values of knobs with which trials end in the same way again and again, and none that is in a trial
// which holds. A refusal says why and costs nothing, and so retires nothing, but for a build that takes too long.
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

// Best returns the settings of the best, and its time relative to the start, of which products of measured ratios are
// an estimate. The number to report is that of a trial that confirms it.
func (s *State) Best() (knobs.Settings, float64) {
	return maps.Clone(s.best), math.Exp(s.score[IDOf(s.best)])
}

// Confirmed returns the trial in which the best was to be confirmed, or nil; whether it was, its verdict says. Of a
// stage it is that of what is adopted or, where the step has shown nothing of what was confirmed so far, of what was
// the best last.
func (s *State) Confirmed() *Trial {
	t := s.confirmed(s.best)
	if s.campaign.Stage == "" {
		return t
	}
	for _, best := range slices.Backward(s.bests) {
		if of := s.confirmed(best); of == nil || of.Accepted {
			return cmp.Or(of, t)
		}
	}
	return t
}

// Adopted returns what a campaign of a stage has come to: the settings whose gain the step shows, or the start. known:
// nothing is left to be confirmed.
func (s *State) Adopted() (settings knobs.Settings, known bool) {
	if t := s.Confirmed(); t != nil && t.Accepted {
		return maps.Clone(t.Settings), true
	}
	return maps.Clone(s.campaign.Start), !slices.ContainsFunc(s.bests, func(best knobs.Settings) bool {
		return s.confirmed(best) == nil
	})
}

// confirmed returns the trial that has confirmed settings, or nil.
func (s *State) confirmed(settings knobs.Settings) *Trial {
	for i := range slices.Backward(s.trials) {
		if t := &s.trials[i]; t.Role == RoleConfirm && IDOf(t.Settings) == IDOf(settings) {
			return t
		}
	}
	return nil
}

// Trials returns all trials in their order. They are not to be changed.
func (s *State) Trials() []Trial { return s.trials }

// Campaign is what the trials are of. It is not to be changed.
func (s *State) Campaign() *Campaign { return s.campaign }

// RegionInfo is what became of the trials in a region.
type RegionInfo struct {
	Name     string   `json:"name"`
	Share    *float64 `json:"share"`    // of a step; null: not known
	Measured bool     `json:"measured"` // the share: it is not of a predicted step
	Trials   int      `json:"trials"`
	Accepted int      `json:"accepted"`
	State    string   `json:"state"` // open, or why it is left
}

// Part says which part of a step the region has a say in, and whether the step was measured.
func (r RegionInfo) Part() string {
	switch {
	case r.Share == nil:
		return "an unknown part of a step"
	case r.Measured:
		return fmt.Sprintf("%.1f %% of a measured step", 100**r.Share)
	}
	return fmt.Sprintf("%.1f %% of a predicted step", 100**r.Share)
}

// Regions lists the regions, in order.
func (s *State) Regions() []RegionInfo {
	var all []RegionInfo
	for _, name := range slices.Sorted(maps.Keys(s.regions)) {
		r := s.regions[name]
		info := RegionInfo{Name: name, Trials: r.trials, Accepted: r.accepted, State: cmp.Or(s.movedOn(name), "open")}
		if share, known := s.share(name); known {
			info.Share, info.Measured = &share, s.trials[0].Verdict.SharesOf == SharesOfProfile
		}
		all = append(all, info)
	}
	return all
}
