package evaluate

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/internal/population"
	"amkc/knobs"
	"amkc/search"
)

// A whole search in which every third schedule is damaged on its way finds a best that is not one of them, and launches
// none of those that are not proved, however fast the GPU says they are.
func TestSearchAmongDamagedSchedules(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	o := optionsFor(t, small, "h200")
	space, err := Space(t.Context(), o, 0, nil)
	require.NoError(t, err)
	source, _, err := Source(o)
	require.NoError(t, err)
	key := search.Key(ed25519.NewKeyFromSeed(bytes.Repeat([]byte("k"), 32)))
	c := &search.Campaign{Schema: search.CampaignSchema, Model: o.Name, Source: source, Target: o.Target.Name,
		Device: search.DeviceCUDA, Positions: []int{0}, HeldOut: []int{9}, Start: knobs.Settings{}, Seed: 5,
		Rules: search.DefaultRules(), Key: key.Public().String(), Space: space}
	dir := t.TempDir()
	require.NoError(t, search.Create(dir, c))
	j, err := search.OpenJournal(dir)
	require.NoError(t, err)
	defer j.Close()
	r := rand.New(rand.NewPCG(9, 9))
	damagedTrials, unproved := map[int]bool{}, 0
	run := search.Runner{Budget: search.Budget{Trials: 72}, Now: time.Now, Describe: NewDescriber(o, c.Positions),
		Evaluate: func(ctx context.Context, job *search.Job) (*search.Verdict, error) {
			g, damage := newFakeGPU(), job.N%3 == 2
			g.us = func(e string, _, _ int) float64 {
				if e == candidate && damage {
					return 1
				}
				return 100 + 10*r.Float64()
			}
			request := Request{Options: o, Candidate: job.Settings, Baseline: job.Against, Device: search.DeviceCUDA,
				Positions: c.PositionsOf(job), Rung: job.Rung, Rules: c.Rules, Build: g.build, Measure: g.take}
			if damage {
				op := &population.Operators[r.IntN(len(population.Operators))]
				request.Lower = func(o compiler.Options) (*compiler.Scheduled, error) {
					l, err := compiler.RunPasses(o)
					if err != nil {
						return nil, err
					}
					of := population.Case{Program: l.Program, Target: l.Program.Target, Kernel: true}
					if op.Apply(r, &of) && of.Program != nil {
						l.Program, damagedTrials[job.N] = of.Program, true
						g.fail = differs // its kernel is not that of the model
					}
					return l, nil
				}
			}
			v, err := Evaluate(ctx, request)
			if err == nil && v.Class == search.Rejected && damagedTrials[job.N] {
				unproved++
				require.Empty(t, g.launched)
			}
			if err == nil {
				key.Sign(v)
			}
			return v, err
		}}
	_, err = run.Run(t.Context(), j)
	require.NoError(t, err)
	require.Greater(t, len(damagedTrials), 10)
	require.Greater(t, unproved, 10)
	for _, trial := range j.State.Trials() {
		if damagedTrials[trial.N] {
			require.False(t, trial.Accepted, "trial %d: %s", trial.N, trial.Verdict.Why)
		}
	}
	require.NoError(t, j.Close())
	sound, err := search.Verify(dir, key.Public())
	require.NoError(t, err)
	require.Zero(t, sound.AcceptedUnproved)
	t.Logf("%d of %d trials damaged, %d rejected, 0 accepted", len(damagedTrials), sound.Trials, unproved)
}
