package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/search/prior"
)

// A Describer says what the cost model makes of a candidate and its baseline at the positions of a campaign. The error
// is why the candidate is refused. Several goroutines may call it.
type Describer func(candidate, baseline knobs.Settings) ([]Predicted, error)

// How many settings are drawn for a guided proposal, and how many of them, the least likely to be refused, are
// described.
const (
	guidedDraws     = 48
	guidedDescribed = 16
)

// Limits of a descent. Gains are differences of the logarithm of a predicted time. A round draws one value per knob, so
// that a round without a gain does not mean that there is none.
const (
	descentRounds = 6     // at most
	descentBarren = 2     // rounds without a gain in a row, after which it ends
	descentGain   = 0.001 // the least that counts
)

// noEffect is the largest difference of a logarithm at which a prediction is taken not to depend on a knob.
const noEffect = 1e-6

// A guide makes a proposal by predictions: those of the cost model, what the campaign's own trials have shown of its
// errors and, if that is asked for, what others have taught of them.
type guide struct {
	s        *State
	job      *Job
	describe Describer
	learnt   *prior.Prior
	own      prior.Learnt // of the campaign's own trials
	r        *rand.Rand
	known    map[string]guess // by id: what was described
	refused  error            // why one of these is
}

// A guess is settings that may be proposed.
type guess struct {
	settings knobs.Settings
	id       string
	why      string
	refused  error
	log      float64 // of what it is expected to take, over its baseline
}

// askGuide has the state's own proposers draw settings, takes those that are best by predictions, and descends from
// them. It follows from the trials and the seed, like other proposals.
func (s *State) askGuide(ctx context.Context, j *Job, describe Describer) (*Proposal, error) {
	g := &guide{s: s, job: j, describe: describe, learnt: &prior.Prior{}, known: map[string]guess{},
		// Another sequence than the one that drew the proposer.
		r: rand.New(rand.NewPCG(^s.campaign.Seed, uint64(j.N)))}
	if j.Proposer == proposePrior {
		g.learnt = s.campaign.Prior
	}
	g.own = s.residuals(&g.learnt.Times)
	if j.Role == RoleHop {
		return g.hop(ctx)
	}
	all, err := g.described(ctx, g.drawn())
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, g.none()
	}
	best, gained, err := g.descend(ctx, all[0])
	if err != nil {
		return nil, err
	}
	if best, err = g.randomised(ctx, best); err != nil {
		return nil, err
	}
	if gained > 0 {
		best.why = fmt.Sprintf("%s, and %d rounds of descent by predictions", best.why, gained)
	}
	best.why = fmt.Sprintf("%s; expected to take %.4f", best.why, math.Exp(best.log))
	return &Proposal{Settings: best.settings, Why: best.why}, nil
}

// hop draws beginnings of a basin, and takes the one of them that is predicted to be best: as it was drawn, since a
// descent would lead back to where the best is. Where predictions refuse all of them it takes the first, whose trial
// says why: one refusal must not be the end of a search.
func (g *guide) hop(ctx context.Context) (*Proposal, error) {
	var all []guess
	for range attempts {
		to, region := g.s.hopped(g.r)
		if all = g.add(all, to, "knobs elsewhere, "+region+" among them"); len(all) == guidedDescribed {
			break
		}
	}
	if len(all) == 0 {
		return nil, g.none()
	}
	first := all[0]
	all, err := g.described(ctx, all)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return &Proposal{Settings: first.settings, Why: first.why}, nil
	}
	return &Proposal{Settings: all[0].settings, Why: fmt.Sprintf("%s; expected to take %.4f", all[0].why,
		math.Exp(all[0].log))}, nil
}

// none says why there is nothing to propose.
func (g *guide) none() error {
	if g.refused != nil {
		return diag.Errorf(codeProposal, g.job.Proposer, "nothing of what was drawn is allowed: %s",
			infile.Reason(g.refused))
	}
	return diag.Errorf(codeProposal, g.job.Proposer, "nothing of what was drawn is new")
}

// drawn has the state's own proposers draw, and returns those that are the least likely to be refused.
func (g *guide) drawn() []guess {
	own := DefaultProposers()
	var all []guess
	for range attempts {
		to, _, why := g.s.drawn(g.r, own[g.r.IntN(len(own))])
		if all = g.add(all, to, why); len(all) == guidedDraws {
			break
		}
	}
	if g.learnt.Refusals.Used {
		refused := func(a guess) float64 { return g.learnt.Refusals.Refused(differences(a.settings, g.job.Against)) }
		slices.SortStableFunc(all, func(a, b guess) int { return cmp.Compare(refused(a), refused(b)) })
	}
	return all[:min(len(all), guidedDescribed)]
}

// add adds settings that are new to a list and may be tried.
func (g *guide) add(all []guess, to knobs.Settings, why string) []guess {
	id := IDOf(to)
	if slices.ContainsFunc(all, func(a guess) bool { return a.id == id }) || !g.s.mayTry(to) {
		return all
	}
	return append(all, guess{settings: to, id: id, why: why})
}

// described predicts the times of guesses. It returns those that are allowed, the fastest first. A trial of a refused
// one would show nothing new.
func (g *guide) described(ctx context.Context, all []guess) ([]guess, error) {
	var describing sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0)) // a description takes a processor, and memory for a program
	for i := range all {
		if known, is := g.known[all[i].id]; is {
			all[i].refused, all[i].log = known.refused, known.log
			continue
		}
		room <- struct{}{}
		describing.Go(func() {
			defer func() { <-room }()
			if ctx.Err() != nil {
				return
			}
			var at []Predicted
			at, all[i].refused = g.describe(all[i].settings, g.job.Against)
			for _, p := range at {
				log := math.Log(p.Candidate / p.Baseline)
				if g.learnt.Times.Used {
					log += g.learnt.Times.At(p.Traits)
				}
				all[i].log += log / float64(len(at))
			}
			if g.own.Used {
				all[i].log += g.own.At(g.s.apart(all[i].settings, g.job.Against))
			}
		})
	}
	describing.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, a := range all {
		g.known[a.id] = a
		if g.refused == nil {
			g.refused = a.refused
		}
	}
	// What is no number is no prediction.
	all = slices.DeleteFunc(all, func(a guess) bool { return a.refused != nil || math.IsNaN(a.log) })
	slices.SortStableFunc(all, func(a, b guess) int { return cmp.Compare(a.log, b.log) })
	return all, nil
}

// descend changes each knob by itself, then combines the changes that are predicted to gain, and continues from the
// best of these. One proposal thus reaches what the cost model takes to be best, and further trials can test what the
// model does not know. It returns where it ends, and how many rounds gained.
func (g *guide) descend(ctx context.Context, from guess) (best guess, gained int, err error) {
	best = from
	for round, barren := 0, 0; round < descentRounds && barren < descentBarren; round++ {
		gains, err := g.described(ctx, g.moves(best.settings))
		if err != nil {
			return guess{}, 0, err
		}
		gains = slices.DeleteFunc(gains, func(a guess) bool { return a.log > best.log-descentGain })
		if len(gains) == 0 {
			barren++
			continue
		}
		together, err := g.described(ctx, g.together(best.settings, gains))
		if err != nil {
			return guess{}, 0, err
		}
		next := gains[0]
		if len(together) > 0 && together[0].log < next.log {
			next = together[0]
		}
		best.settings, best.id, best.log = next.settings, next.id, next.log
		gained, barren = gained+1, 0
	}
	return best, gained, nil
}

// randomised changes knobs that the prediction does not depend on, each with a probability of one half. Otherwise
// guided proposals would leave them as they are, and only the other proposers would find out what they do on a GPU.
func (g *guide) randomised(ctx context.Context, best guess) (guess, error) {
	moved, err := g.described(ctx, g.moves(best.settings))
	if err != nil {
		return guess{}, err
	}
	without := slices.DeleteFunc(moved, func(a guess) bool {
		return math.Abs(a.log-best.log) > noEffect || g.r.IntN(2) == 0
	})
	// Together they may be refused, or have an effect.
	together, err := g.described(ctx, g.together(best.settings, without))
	if err != nil {
		return guess{}, err
	}
	for _, a := range append(together, without...) {
		if a.log < best.log+descentGain {
			best.settings, best.id, best.log = a.settings, a.id, a.log
			break
		}
	}
	return best, nil
}

// moves are settings with one knob at another value, one value for each knob.
func (g *guide) moves(from knobs.Settings) []guess {
	var all []guess
	for i := range g.s.campaign.Space.Knobs {
		k := &g.s.campaign.Space.Knobs[i]
		if to := k.with(from, draw(g.r, k)); !maps.Equal(to, from) {
			all = g.add(all, to, "")
		}
	}
	return all
}

// together are settings with the moves of the best of others at once: of all, of half, and so on while there are two.
func (g *guide) together(from knobs.Settings, moved []guess) []guess {
	var all []guess
	for n := len(moved); n > 1; n /= 2 {
		to := from
		for _, m := range moved[:n] {
			for i := range g.s.campaign.Space.Knobs {
				k := &g.s.campaign.Space.Knobs[i]
				if m.settings[k.Path] != from[k.Path] {
					to = k.as(to, m.settings)
				}
			}
		}
		all = g.add(all, to, "")
	}
	return all
}
