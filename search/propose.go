package search

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"amkc/ir/diag"
	"amkc/knobs"
)

// The proposers. One that runs a command is written exec:COMMAND.
const (
	proposeRandom = "random" // two to four knobs of the basin's incumbent, anywhere
	proposeLocal  = "local"  // one knob of the basin's incumbent, to a value that was not tried
	proposeEvolve = "evolve" // two of the best that are known, crossed, and sometimes a knob moved
	proposeCost   = "cost"   // of many drawn by the others the best by the cost model, and a descent from there
	proposePrior  = "prior"  // likewise, by the cost model and what was learnt of its errors
	proposeExec   = "exec:"

	proposeHop     = "hop"     // the first of a basin, where no predictions are asked
	proposeCombine = "combine" // what the bracket before has gained, together; comes with evolve
)

// asked reports whether a proposer has to be asked when a trial is made, and is none of the state's own.
func asked(proposer string) bool {
	return proposer == proposeCost || proposer == proposePrior || strings.HasPrefix(proposer, proposeExec)
}

// DefaultProposers are those of a campaign that names none.
func DefaultProposers() []string {
	return []string{proposeLocal, proposeLocal, proposeEvolve, proposeRandom}
}

// OwnProposers are those that need neither a command nor a corpus.
func OwnProposers() []string {
	return []string{proposeRandom, proposeLocal, proposeEvolve, proposeCost}
}

// CheckProposer refuses a name that is none.
func CheckProposer(name string) error {
	names := append(OwnProposers(), proposePrior)
	if slices.Contains(names, name) || strings.HasPrefix(name, proposeExec) && len(name) > len(proposeExec) {
		return nil
	}
	return diag.Errorf(codeProposer, "proposer", "%q is not known; %s", name, diag.Guess(name, names,
		"want random, local, evolve, cost, prior or exec:COMMAND"))
}

// attempts is how often a proposer draws before it is taken to have nothing new.
const attempts = 200

// propose draws a proposer and has it propose. It returns nil where nothing new was found.
func (s *State) propose(r *rand.Rand, bracket int) (*Job, error) {
	c := s.campaign
	job := &Job{N: len(s.trials), Role: RoleCandidate, Rung: Screen, Basin: s.basin, Bracket: bracket, Against: s.local}
	if to, region, why := s.combined(bracket); to != nil {
		job.Proposer, job.Settings, job.Region, job.Why = proposeCombine, to, region, why
		return job, nil
	}
	for range attempts {
		if job.Proposer = c.Proposers[r.IntN(len(c.Proposers))]; asked(job.Proposer) {
			job.Settings, job.Why, job.Region = nil, "", s.drawRegion(r) // not what a draw before has left
			return job, nil                                              // who makes the trial asks
		}
		job.Settings, job.Region, job.Why = s.drawn(r, job.Proposer)
		if s.mayTry(job.Settings) {
			return job, nil
		}
	}
	return nil, nil
}

// drawn has one of the state's own proposers propose.
func (s *State) drawn(r *rand.Rand, proposer string) (to knobs.Settings, region, why string) {
	switch proposer {
	case proposeLocal:
		return s.moved(r)
	case proposeEvolve:
		return s.crossed(r)
	}
	return s.anywhere(r)
}

// openRegions lists the regions that are worth a trial, in order: those that have a knob, are a part of a step that is
// larger than the least gain that counts, and have not come to a plateau.
func (s *State) openRegions() []string {
	var open []string
	for _, name := range slices.Sorted(maps.Keys(s.regions)) {
		if s.movedOn(name) == "" {
			open = append(open, name)
		}
	}
	return open
}

// movedOn says why a region is left, or nothing.
func (s *State) movedOn(name string) string {
	rules, region := &s.campaign.Rules, s.regions[name]
	share, known := s.share(name)
	switch {
	case known && share < rules.MinGain:
		return "less of a step than the least gain that counts"
	case region.fruitless >= rules.Plateau:
		return "plateau"
	}
	return ""
}

// share is the part of a step that a region has a say in, and whether that is known.
func (s *State) share(region string) (float64, bool) {
	if len(s.trials) == 0 || s.trials[0].Verdict == nil || s.trials[0].Verdict.Timing == nil {
		return 0, false
	}
	share, is := s.trials[0].Verdict.Shares[region]
	return share, is
}

// drawRegion draws one of the open regions, a larger part of the step and more knobs that can be moved more often.
// There is one: a basin without is left.
func (s *State) drawRegion(r *rand.Rand) string {
	open := s.openRegions()
	total := 0.0
	weights := make([]float64, len(open))
	for i, name := range open {
		share, known := s.share(name)
		if !known {
			share = 0.2
		}
		weights[i] = max(share, 0.05) * s.untried(name)
		total += weights[i]
	}
	at := r.Float64() * total
	for i, w := range weights {
		if at -= w; at < 0 {
			return open[i]
		}
	}
	return open[len(open)-1]
}

// untried is how many knobs of a region have a value that was not tried with everything else as the basin's incumbent
// has it, and 0.1 if there is none.
func (s *State) untried(region string) float64 {
	n := 0.1
	for _, k := range s.knobsIn(region) {
		if s.moves(k) < len(k.choices()) {
			n++
		}
	}
	return n
}

// knobsIn lists the knobs of a region.
func (s *State) knobsIn(region string) []*Knob {
	var in []*Knob
	for i := range s.campaign.Space.Knobs {
		if k := &s.campaign.Space.Knobs[i]; k.Region == region {
			in = append(in, k)
		}
	}
	return in
}

// choices are the values that a knob may be drawn at: those that are accepted by themselves, and those that may be
// accepted beside others.
func (k *Knob) choices() []knobs.Value {
	all := slices.Clone(k.Values)
	for _, r := range k.Refused {
		all = append(all, r.Value)
	}
	return all
}

// draw draws a value: one that is refused by itself seldom, since it may want another knob changed too.
func draw(r *rand.Rand, k *Knob) knobs.Value {
	if n := len(k.Refused); n > 0 && (len(k.Values) == 1 || r.IntN(8) == 0) {
		return k.Refused[r.IntN(n)].Value
	}
	return k.Values[r.IntN(len(k.Values))]
}

// moved changes one knob of the basin's incumbent, one of those of which the fewest values were tried, to a value that
// was not: a step or two away in the order of its values, or any. It returns the incumbent where the region has none.
func (s *State) moved(r *rand.Rand) (to knobs.Settings, region, why string) {
	region = s.drawRegion(r)
	in := s.knobsIn(region)
	r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	slices.SortStableFunc(in, func(a, b *Knob) int { return cmp.Compare(s.moves(a), s.moves(b)) })
	for _, k := range in {
		all, is := k.choices(), k.value(s.local)
		at := slices.Index(all, is)
		var near, new []knobs.Value
		for i, v := range all {
			if !s.mayTry(k.with(s.local, v)) { // nor is what it has
				continue
			}
			if new = append(new, v); at-2 <= i && i <= at+2 {
				near = append(near, v)
			}
		}
		if len(near) > 0 && r.IntN(4) > 0 {
			new = near
		}
		if len(new) > 0 {
			v := new[r.IntN(len(new))]
			return k.with(s.local, v), region, k.Path + " " + string(is) + " to " + string(v)
		}
	}
	return s.local, region, ""
}

// moves is how many values of a knob were tried with everything else as the basin's incumbent has it.
func (s *State) moves(k *Knob) int {
	n := 0
	for _, v := range k.choices() {
		if _, tried := s.named[IDOf(k.with(s.local, v))]; tried {
			n++
		}
	}
	return n
}

// anywhere changes two to four knobs of the basin's incumbent.
func (s *State) anywhere(r *rand.Rand) (to knobs.Settings, region, why string) {
	space := s.campaign.Space
	to = maps.Clone(s.local)
	var words []string
	for range 2 + r.IntN(3) {
		k := &space.Knobs[r.IntN(len(space.Knobs))]
		v := draw(r, k)
		to, region = k.with(to, v), k.Region
		words = append(words, k.Path+" "+string(v))
	}
	return to, region, strings.Join(words, ", ")
}

// elite is how many of the best are crossed.
const elite = 8

// crossed takes each knob from one of two of the best, and moves one in three times.
func (s *State) crossed(r *rand.Rand) (to knobs.Settings, region, why string) {
	known := s.ranked()
	a, b := known[r.IntN(min(elite, len(known)))], known[r.IntN(min(elite, len(known)))]
	to = knobs.Settings{}
	for i := range s.campaign.Space.Knobs {
		k := &s.campaign.Space.Knobs[i]
		from := a
		if r.IntN(2) == 0 {
			from = b
		}
		if to = k.as(to, from); k.value(to) != k.value(s.local) {
			region = k.Region
		}
	}
	why = IDOf(a) + " and " + IDOf(b)
	if r.IntN(3) == 0 || region == "" {
		k := &s.campaign.Space.Knobs[r.IntN(len(s.campaign.Space.Knobs))]
		v := draw(r, k)
		to, region = k.with(to, v), k.Region
		why += ", " + k.Path + " " + string(v)
	}
	return to, region, why
}

// ranked lists the settings with a known time, the fastest first; the start is among them.
func (s *State) ranked() []knobs.Settings {
	ids := slices.SortedFunc(maps.Keys(s.score), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.score[a], s.score[b]), cmp.Compare(a, b))
	})
	var all []knobs.Settings
	for _, id := range ids {
		all = append(all, s.named[id])
	}
	return all
}
