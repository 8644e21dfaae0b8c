package evaluate

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/bench/turns"
	"amkc/compiler"
	"amkc/internal/population"
	"amkc/ir"
	"amkc/knobs"
	"amkc/search"
)

// differs is how a GPU answers to a candidate whose kernel computes something else than the plain kernels.
func differs(entrant string) error {
	if entrant == candidate {
		return turns.ErrDiffers
	}
	return nil
}

// Every operator that can damage a schedule is applied to lowered models, and each damaged program is judged as a
// candidate on a GPU that finds it ten times as fast as its baseline. What is not proved is never built or launched;
// and nothing that computes something else passes, because what is checked is what the reference VM makes of it.
func TestDamagedSchedulesAreNeverKept(t *testing.T) {
	models, seeds := []string{"models/zoo/llama-gqa"}, uint64(1)
	if os.Getenv("AMKC_LONG") != "" {
		models = append(models, "models/zoo/gemma-tied", "models/zoo/gpt2", "models/pycoder-5m")
		seeds = 4
	}
	var made, rejected, failed, harmless int
	for _, model := range models {
		for _, op := range population.Operators {
			for seed := range seeds {
				r := requestFor(t, knobs.Settings{"tiling.ring.pace": "500"}, nil)
				r.Options = optionsFor(t, model, "h200")
				r.Positions = []int{0}
				applied, changed := false, false
				r.Lower = func(o compiler.Options) (*compiler.Scheduled, error) {
					l, err := compiler.RunPasses(o)
					if err != nil {
						return nil, err
					}
					c := population.Case{Program: l.Program, Target: l.Program.Target, Kernel: true}
					before := ir.Print(l.Program)
					applied = op.Apply(rand.New(rand.NewPCG(seed, 7)), &c) && c.Program != nil
					if applied {
						l.Program = c.Program
						changed = !bytes.Equal(before, ir.Print(l.Program))
					}
					return l, nil
				}
				v := judgedAs(t, r) // on the reference VM
				if !applied || !changed {
					continue
				}
				made++
				g := newFakeGPU()
				if v.Class != search.Pass {
					g.fail = differs
				}
				g.us = func(e string, _, _ int) float64 {
					if e == candidate {
						return 10
					}
					return 100
				}
				on := r
				on.Device, on.Build, on.Measure = search.DeviceCUDA, g.build, g.take
				measured, err := Evaluate(t.Context(), on)
				switch v.Class {
				case search.Rejected:
					rejected++
					require.NoError(t, err)
					require.Equal(t, search.Rejected, measured.Class, op.Name)
					require.NotEmpty(t, v.Reason.Code, op.Name)
					require.Empty(t, g.built, "%s: %s is built", op.Name, v.Reason)
					require.Empty(t, g.launched, "%s: %s is launched", op.Name, v.Reason)
				case search.Fail:
					failed++
					require.NoError(t, err)
					require.Equal(t, search.Fail, measured.Class, op.Name)
				case search.Pass:
					harmless++
					require.True(t, v.Correctness.Passed, op.Name)
					require.NotNil(t, v.Proof, op.Name)
					require.True(t, v.Proof.OK, op.Name)
				default:
					t.Fatalf("%s: %s", op.Name, v.Class)
				}
				require.True(t, v.Class == search.Pass || measured.Decision == search.Revert, "%s is kept", op.Name)
			}
		}
	}
	t.Logf("%d damaged programs: %d rejected, %d compute something else, %d change nothing that matters; 0 of the "+
		"first "+
		"two kept, 0 of the first launched", made, rejected, failed, harmless)
	require.Greater(t, rejected, 25)
}

// A whole search in which every third schedule is damaged on its way comes to a best that is none of them, and launches
// none of those that are not proved, however fast the GPU says they are.
func TestSearchAmongDamagedSchedules(t *testing.T) {
	o := optionsFor(t, small, "h200")
	space, err := Space(t.Context(), o, nil)
	require.NoError(t, err)
	source, _, err := Source(o)
	require.NoError(t, err)
	key := search.Key(bytes.Repeat([]byte("k"), 32))
	c := &search.Campaign{Schema: search.CampaignSchema, Model: o.Name, Source: source, Target: o.Target.Name,
		Device: search.DeviceCUDA, Positions: []int{0}, HeldOut: []int{9}, Objective: search.Objective,
		Start: knobs.Settings{}, Seed: 5, Proposers: search.DefaultProposers(), Rules: search.DefaultRules(),
		Key: key.Name(), Space: space}
	dir := t.TempDir()
	require.NoError(t, search.Create(dir, c))
	j, err := search.OpenJournal(dir)
	require.NoError(t, err)
	defer j.Close()
	r := rand.New(rand.NewPCG(9, 9))
	damagedTrials, unproved := map[int]bool{}, 0
	run := search.Runner{Budget: search.Budget{Trials: 45}, Now: time.Now,
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
			require.False(t, trial.Best || trial.Accepted, "trial %d: %s", trial.N, trial.Verdict.Why)
		}
	}
	require.NoError(t, j.Close())
	sound, err := search.Verify(dir, key)
	require.NoError(t, err)
	require.Zero(t, sound.BestUnproved)
	t.Logf("%d of %d trials damaged, %d rejected, 0 best", len(damagedTrials), sound.Trials, unproved)
}
