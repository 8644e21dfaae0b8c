package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"amkc/ir/diag"
	"amkc/knobs"
)

// A Describer says what the cost model makes of a candidate and its baseline at the positions of a campaign. The error
// is why the candidate is refused.
type Describer func(candidate, baseline knobs.Settings) ([]Predicted, error)

// How many settings are drawn for a proposal of the prior, and how many of them, the least likely to be refused, are
// described.
const (
	priorDraws     = 48
	priorDescribed = 8
)

// askPrior has the state's own proposers draw settings, and takes those that are best by the cost model and what was
// learnt of its errors. It follows from the trials and the seed, like other proposals.
func (s *State) askPrior(ctx context.Context, j *Job, describe Describer) (*Proposal, error) {
	type choice struct {
		settings     knobs.Settings
		why          string
		refused, log float64
	}
	learnt := s.campaign.Prior
	r := rand.New(rand.NewPCG(^s.campaign.Seed, uint64(j.N))) // another sequence than the one that drew the proposer
	own, seen := DefaultProposers(), map[string]bool{}
	var all []choice
	for range attempts {
		to, _, why := s.drawn(r, own[r.IntN(len(own))])
		if id := IDOf(to); !seen[id] && s.mayTry(to) {
			seen[id] = true
			all = append(all, choice{settings: to, why: why})
		}
		if len(all) == priorDraws {
			break
		}
	}
	for i := range all {
		if learnt.Refusals.Used {
			all[i].refused = learnt.Refusals.Refused(differences(all[i].settings, j.Against))
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int { return cmp.Compare(a.refused, b.refused) })
	var best *choice
	for i := range all[:min(len(all), priorDescribed)] {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		at, err := describe(all[i].settings, j.Against)
		if err != nil {
			continue // refused: nothing that a trial would find out is not known
		}
		for _, p := range at {
			log := math.Log(p.Candidate / p.Baseline)
			if learnt.Times.Used {
				log += learnt.Times.At(p.Traits)
			}
			all[i].log += log / float64(len(at))
		}
		if best == nil || all[i].log < best.log {
			best = &all[i]
		}
	}
	if best == nil {
		return nil, diag.Errorf(codeProposal, proposePrior, "nothing of what was drawn is new and allowed")
	}
	return &Proposal{Settings: best.settings, Why: fmt.Sprintf("%s; expected to take %.4f", best.why,
		math.Exp(best.log))}, nil
}
