package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"amkc/knobs"
)

// combined is the combination that a bracket's next proposal is, if it is one and there is something to combine: the
// incumbent with what has gained in the bracket before it, all of it or, where that was tried, the better half, and so
// on. It is the first of a bracket, so that it is built with the others; there is none without evolve, which crosses
// what is known.
func (s *State) combined(bracket int) (to knobs.Settings, region, why string) {
	if bracket == s.bracket || s.combining == bracket || !slices.Contains(s.campaign.Proposers, proposeEvolve) {
		return nil, "", ""
	}
	all, least := gains(s.results[Screen]), 2
	if s.accepted { // beside what the incumbent has of them already
		least = 1
	}
	for ; len(all) >= least; all = all[:len(all)/2] {
		if to, region, why = s.added(all, least); to != nil && s.mayTry(to) {
			return to, region, why
		}
	}
	return nil, "", ""
}

// gains are those of trials that seem to be better than what they were against, the best first.
func gains(trials []*Trial) []*Trial {
	all := slices.DeleteFunc(slices.Clone(trials), func(t *Trial) bool {
		return t.Verdict == nil || t.Verdict.Decision != Promising || t.Verdict.Ratio.Mean >= 1
	})
	slices.SortStableFunc(all, func(a, b *Trial) int { return cmp.Compare(a.Verdict.Ratio.Mean, b.Verdict.Ratio.Mean) })
	return all
}

// added changes everything about the basin's incumbent that trials have changed about theirs and that it has as theirs
// had it: a knob that several have changed as the first of them. It returns nil where that adds less than so many
// trials.
func (s *State) added(trials []*Trial, least int) (to knobs.Settings, region, why string) {
	to = maps.Clone(s.local)
	from := map[*Trial]bool{}
	for i := range s.campaign.Space.Knobs {
		k := &s.campaign.Space.Knobs[i]
		for _, t := range trials {
			if t.Settings[k.Path] != t.Against[k.Path] && t.Against[k.Path] == s.local[k.Path] {
				to, from[t] = k.as(to, t.Settings), true
				region = cmp.Or(region, t.Region)
				break
			}
		}
	}
	if len(from) < least {
		return nil, "", ""
	}
	return to, region, fmt.Sprintf("gained in the bracket before: %d trials", len(from))
}
