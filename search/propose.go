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
	"strings"
	"sync"

	"amkc/knobs"
)

// A Describer predicts the logarithm of a candidate's time relative to the baseline, over the positions of a campaign.
// The error is the reason why the candidate is refused. Several goroutines may call it concurrently.
type Describer func(candidate, baseline knobs.Settings) (log float64, err error)

// How a round is proposed. One proposal in three descends by predictions, which takes hundreds of them; the others try
// what predictions are blind to.
const (
	guidedEvery = 3
	guidedDraws = 16   // of which the best by predictions is where a descent begins
	looseDraws  = 4    // of which the best by predictions is proposed as it is
	attempts    = 200  // at drawing something new, after which there is taken to be nothing
	descents    = 6    // rounds of a descent at most
	flat        = 2    // rounds without a gain, one after another, after which a descent ends: each draws other values
	leastGain   = 1e-3 // of a round, as a difference of logarithms
	noEffect    = 1e-6 // the largest difference at which a prediction is taken not to depend on a knob
)

// A proposer makes the proposals of one round. They follow from the trials before it and the seed.
type proposer struct {
	s        *State
	describe Describer
	r        *rand.Rand
	known    map[string]guess // by id: what was described
	taken    map[string]bool  // by id: what the round has
}

// A guess is settings that may be proposed.
type guess struct {
	settings knobs.Settings
	id       string
	why      string
	log      float64 // of the time that is expected, relative to the incumbent
	refused  bool
}

// propose returns a round of screenings, fewer than asked for where nothing more is in reach. The error is the cause of
// a cancelled context.
func (s *State) propose(ctx context.Context, describe Describer) ([]Job, error) {
	p := &proposer{s: s, describe: describe, r: rand.New(rand.NewPCG(s.campaign.Seed, uint64(len(s.trials)))),
		known: map[string]guess{}, taken: map[string]bool{}}
	var jobs []Job
	for i := range s.campaign.Rules.Width {
		best, is, err := p.next(ctx, i%guidedEvery == 0)
		if err != nil {
			return nil, err
		}
		if !is {
			continue
		}
		p.taken[best.id] = true
		jobs = append(jobs, Job{N: len(s.trials) + len(jobs), Role: RoleCandidate, Rung: Screen, Round: s.round() + 1,
			Why:      fmt.Sprintf("%s; expected to take %.4f", best.why, math.Exp(best.log)),
			Settings: best.settings, Against: s.incumbent()})
	}
	for i := range jobs {
		jobs[i].Of = len(jobs)
	}
	return jobs, nil
}

// next is one proposal. There may be none: nothing that was drawn is new and allowed.
func (p *proposer) next(ctx context.Context, guided bool) (best guess, is bool, err error) {
	draws := looseDraws
	if guided {
		draws = guidedDraws
	}
	var all []guess
	for n := 0; n < attempts && len(all) < draws; n++ {
		to, why := p.drawn()
		all = p.add(all, to, why)
	}
	if all, err = p.described(ctx, all); err != nil || len(all) == 0 {
		return guess{}, false, err
	}
	if best = all[0]; !guided {
		return best, true, nil
	}
	why := best.why
	best, rounds, err := p.descend(ctx, best)
	if err == nil {
		best, err = p.randomised(ctx, best)
	}
	if best.why = why; rounds > 0 {
		best.why += fmt.Sprintf(", and a descent of %d by predictions", rounds)
	}
	return best, true, err
}

// drawn changes one knob of the incumbent, or two to four: each to a value a step or two away, or to any.
func (p *proposer) drawn() (to knobs.Settings, why string) {
	space, n := p.s.campaign.Space, 1
	if p.r.IntN(2) == 0 {
		n = 2 + p.r.IntN(3)
	}
	to = p.s.incumbent()
	var words []string
	for range n {
		k := &space.Knobs[p.r.IntN(len(space.Knobs))]
		was, v := k.value(to), p.value(k, to)
		to, words = k.with(to, v), append(words, fmt.Sprintf("%s %s to %s", k.Path, was, v))
	}
	return to, strings.Join(words, ", ")
}

// value draws another value of a knob than settings have: mostly one near it.
func (p *proposer) value(k *Knob, of knobs.Settings) knobs.Value {
	is := k.value(of)
	if at := slices.Index(k.Values, is); at >= 0 && p.r.IntN(4) > 0 {
		near := slices.Clone(k.Values[max(0, at-2):min(len(k.Values), at+3)])
		if near = slices.DeleteFunc(near, func(v knobs.Value) bool { return v == is }); len(near) > 0 {
			return near[p.r.IntN(len(near))]
		}
	}
	return k.any(p.r)
}

// add adds settings to a list if they are new and may be tried.
func (p *proposer) add(all []guess, to knobs.Settings, why string) []guess {
	id := IDOf(to)
	if p.taken[id] || slices.ContainsFunc(all, func(a guess) bool { return a.id == id }) || !p.s.mayTry(to) {
		return all
	}
	return append(all, guess{settings: to, id: id, why: why})
}

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

// described predicts the times of guesses. It returns those that are allowed, the fastest first.
func (p *proposer) described(ctx context.Context, all []guess) ([]guess, error) {
	var describing sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0)) // a description takes a processor, and memory for a program
	for i := range all {
		if known, is := p.known[all[i].id]; is {
			all[i].refused, all[i].log = known.refused, known.log
			continue
		}
		room <- struct{}{}
		describing.Go(func() {
			defer func() { <-room }()
			if ctx.Err() != nil {
				return
			}
			log, err := p.describe(all[i].settings, p.s.incumbent())
			all[i].log = log + p.s.correction(all[i].settings, p.s.incumbent())
			all[i].refused = err != nil || math.IsNaN(all[i].log)
		})
	}
	describing.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, a := range all {
		p.known[a.id] = a
	}
	all = slices.DeleteFunc(all, func(a guess) bool { return a.refused })
	slices.SortStableFunc(all, func(a, b guess) int { return cmp.Compare(a.log, b.log) })
	return all, nil
}

// descend changes each knob on its own, then combines the changes that are predicted to gain, and continues from the
// best of these. It returns where it ends, and how many rounds gained.
func (p *proposer) descend(ctx context.Context, best guess) (_ guess, gained int, err error) {
	for round, barren := 0, 0; round < descents && barren < flat; round++ {
		gains, err := p.described(ctx, p.moves(best.settings))
		if err != nil {
			return guess{}, 0, err
		}
		gains = slices.DeleteFunc(gains, func(a guess) bool { return a.log > best.log-leastGain })
		if len(gains) == 0 {
			barren++
			continue
		}
		together, err := p.described(ctx, p.together(best.settings, gains))
		if err != nil {
			return guess{}, 0, err
		}
		if best = gains[0]; len(together) > 0 && together[0].log < best.log {
			best = together[0]
		}
		gained, barren = gained+1, 0
	}
	return best, gained, nil
}

// randomised changes knobs that the prediction does not depend on, each with a probability of one half: only a
// measurement finds out what they do.
func (p *proposer) randomised(ctx context.Context, best guess) (guess, error) {
	moved, err := p.described(ctx, p.moves(best.settings))
	if err != nil {
		return guess{}, err
	}
	without := slices.DeleteFunc(moved, func(a guess) bool {
		return math.Abs(a.log-best.log) > noEffect || p.r.IntN(2) == 0
	})
	// Together they may be refused, or have an effect.
	together, err := p.described(ctx, p.together(best.settings, without))
	if err != nil {
		return guess{}, err
	}
	for _, a := range append(together, without...) {
		if a.log < best.log+leastGain {
			return a, nil
		}
	}
	return best, nil
}

// moves are settings with one knob at another value, one value for each knob.
func (p *proposer) moves(from knobs.Settings) []guess {
	var all []guess
	for i := range p.s.campaign.Space.Knobs {
		k := &p.s.campaign.Space.Knobs[i]
		if to := k.with(from, k.any(p.r)); !maps.Equal(to, from) {
			all = p.add(all, to, "")
		}
	}
	return all
}

// any draws any value. One that is refused on its own is drawn seldom, since it may want another knob changed too.
func (k *Knob) any(r *rand.Rand) knobs.Value {
	if n := len(k.Refused); n > 0 && (len(k.Values) == 1 || r.IntN(8) == 0) {
		return k.Refused[r.IntN(n)].Value
	}
	return k.Values[r.IntN(len(k.Values))]
}

// together are settings with the moves of the best of others at once: of all, of half, and so on while there are two.
func (p *proposer) together(from knobs.Settings, moved []guess) []guess {
	var all []guess
	for n := len(moved); n > 1; n /= 2 {
		to := from
		for _, m := range moved[:n] {
			for i := range p.s.campaign.Space.Knobs {
				if k := &p.s.campaign.Space.Knobs[i]; m.settings[k.Path] != from[k.Path] {
					to = k.as(to, m.settings)
				}
			}
		}
		all = p.add(all, to, "")
	}
	return all
}
