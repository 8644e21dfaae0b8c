package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/search/prior"
)

// A Describer says what the cost model makes of a candidate and its baseline at the positions of a campaign. The error
// is why the candidate is refused. Several goroutines may call it.
type Describer func(candidate, baseline knobs.Settings) ([]Predicted, error)

// How many settings are drawn for a proposal of the prior, and how many of them, the least likely to be refused, are
// described.
const (
	priorDraws     = 48
	priorDescribed = 16
)

// askPrior has the state's own proposers draw settings, and takes those that are best by the cost model and, if that is
// asked for, what was learnt of its errors. It follows from the trials and the seed, like other proposals.
func (s *State) askPrior(ctx context.Context, j *Job, describe Describer) (*Proposal, error) {
	type choice struct {
		settings     knobs.Settings
		why          string
		refused, log float64
		allowed      bool
	}
	learnt := &prior.Prior{}
	if j.Proposer == proposePrior {
		learnt = s.campaign.Prior
	}
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
	all = all[:min(len(all), priorDescribed)]
	var describing sync.WaitGroup
	for i := range all {
		describing.Go(func() {
			at, err := describe(all[i].settings, j.Against)
			// One that is refused is left out: nothing that a trial would find out is not known.
			all[i].allowed = err == nil
			for _, p := range at {
				log := math.Log(p.Candidate / p.Baseline)
				if learnt.Times.Used {
					log += learnt.Times.At(p.Traits)
				}
				all[i].log += log / float64(len(at))
			}
		})
	}
	describing.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c choice) bool { return !c.allowed })
	if len(all) == 0 {
		return nil, diag.Errorf(codeProposal, j.Proposer, "nothing of what was drawn is new and allowed")
	}
	best := slices.MinFunc(all, func(a, b choice) int { return cmp.Compare(a.log, b.log) })
	return &Proposal{Settings: best.settings, Why: fmt.Sprintf("%s; expected to take %.4f", best.why,
		math.Exp(best.log))}, nil
}
