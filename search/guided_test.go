package search

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// The first proposal by predictions is near the best that they know, and never what is refused or may not be tried.
func TestGuidedProposalsDescend(t *testing.T) {
	c := toyCampaign(toySpace().Cold())
	c.Proposers = []string{proposeCost}
	s := NewState(c)
	asked, pages := map[string]bool{}, map[knobs.Value]int{}
	describe := func(candidate, baseline knobs.Settings) ([]Predicted, error) {
		if candidate["page_allocation"] == "linear" {
			return nil, errors.New("refused")
		}
		return []Predicted{{Candidate: toyTime(candidate), Baseline: toyTime(baseline)}}, nil
	}
	start, best := toyTime(c.Start), 1.0
	for n := range 12 {
		job := &Job{N: n, Role: RoleCandidate, Rung: Screen, Against: c.Start, Proposer: proposeCost}
		p, err := s.askGuide(t.Context(), job, describe)
		require.NoError(t, err)
		require.True(t, s.mayTry(p.Settings))
		require.NotEqual(t, knobs.Value("linear"), p.Settings["page_allocation"])
		require.Contains(t, p.Why, "rounds of descent")
		require.Less(t, toyTime(p.Settings)/start, 0.8, "proposal %d; what is drawn alone takes 0.86", n)
		best = min(best, toyTime(p.Settings)/start)
		again, err := s.askGuide(t.Context(), job, describe)
		require.NoError(t, err)
		require.Equal(t, p, again, "it follows from the trials and the seed")
		asked[IDOf(p.Settings)] = true
		pages[p.Settings["page_allocation"]]++ // nothing is said of it
	}
	require.Greater(t, len(asked), 6, "other draws end in other places")
	require.Less(t, best, 0.68)
	require.Greater(t, len(pages), 1, "knobs without a predicted effect are drawn: %v", pages)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.askGuide(ctx, &Job{Against: c.Start, Proposer: proposeCost}, describe)
	require.ErrorIs(t, err, context.Canceled)
}

// Where predictions are asked a basin begins at the best of several draws by them. TestBasins has campaigns that ask
// none.
func TestHopsArePredicted(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Proposers = []string{proposeLocal, proposeCost}
	s := NewState(c)
	start := &Job{Role: RoleStart, Rung: Final, Settings: c.Start, Against: c.Start}
	s.Apply(&Trial{Job: *start, Verdict: toyVerdict(c, start)})
	r := rand.New(rand.NewPCG(1, 1))
	job := s.hop(r)
	require.Equal(t, RoleHop, job.Role)
	require.Equal(t, proposeCost, job.Proposer)
	require.Nil(t, job.Settings)
	describe := func(candidate, baseline knobs.Settings) ([]Predicted, error) {
		if candidate["page_allocation"] == "linear" {
			return nil, errors.New("refused")
		}
		return []Predicted{{Candidate: toyTime(candidate), Baseline: toyTime(baseline)}}, nil
	}
	p, err := s.askGuide(t.Context(), job, describe)
	require.NoError(t, err)
	require.True(t, s.mayTry(p.Settings))
	faster := 0
	for range 100 {
		if to, _ := s.hopped(r); toyTime(to) < toyTime(p.Settings) {
			faster++
		}
	}
	require.Less(t, faster, 20, "%v takes %.1f", p.Settings, toyTime(p.Settings))
	p, err = s.askGuide(t.Context(), job, func(_, _ knobs.Settings) ([]Predicted, error) {
		return nil, errors.New("no")
	})
	require.NoError(t, err, "what is refused says so in its trial")
	require.True(t, s.mayTry(p.Settings))
}
