package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/engine"
	"amkc/app/prompts"
	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
	"amkc/text/sampling"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// open opens a build with passes of n sequences, or with none.
func open(t *testing.T, sequences int) *host.Session {
	t.Helper()
	hosttest.NeedDriver(t)
	s, err := host.Open(t.Context(), hosttest.Build(t, "", func(f *host.Facts) {
		hosttest.AddPasses(f, shape.Pass{Rows: 8})
		if sequences > 1 {
			hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: sequences})
		}
	}), host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Prompts are completed to the same results by builds with passes of several sequences and without, greedily and drawn,
// in their order.
func TestPromptsAreCompletedAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var jobs []prompts.Job
	for i := range 25 {
		ids := make([]int, 1+rng.IntN(60))
		for k := range ids {
			ids[k] = 2 + rng.IntN(4000)
		}
		jobs = append(jobs, prompts.Job{Line: i + 1, IDs: ids, Most: 1 + rng.IntN(129-len(ids))})
	}
	drawn := sampling.Greedy()
	drawn.Temperature, drawn.Seed = 1.5, 7
	for name, o := range map[string]sampling.Options{"greedy": sampling.Greedy(), "drawn": drawn} {
		t.Run(name, func(t *testing.T) {
			var want []prompts.Result
			for _, sequences := range []int{1, 2, 8} {
				for _, b := range []host.BatchOptions{{}, {Steps: 16, Prompt: 1000}} {
					s := open(t, sequences)
					e := engine.New(s, b)
					require.Equal(t, serve.Limits{Vocab: 4096, MaxSeq: 128, Hidden: 64, Sequences: sequences},
						e.Limits())
					var got []prompts.Result
					require.NoError(t, prompts.Complete(t.Context(), e, jobs,
						prompts.Options{Sampling: o, Ends: []int{1, 17, 99}}, func(r prompts.Result) error {
							got = append(got, r)
							return nil
						}))
					if want == nil {
						want = got
					}
					require.Equal(t, want, got, fmt.Sprint(sequences, b))
					require.NoError(t, s.Close())
				}
			}
			require.Len(t, want, len(jobs))
			for i, r := range want {
				require.Equal(t, i+1, r.Line)
				require.Equal(t, jobs[i].IDs, r.PromptIDs)
				last := r.IDs[len(r.IDs)-1]
				require.Equal(t, slices.Contains([]int{1, 17, 99}, last), r.Finish == "stop")
				if name == "greedy" {
					text := slices.Clone(jobs[i].IDs)
					for _, id := range r.IDs {
						_, chosen := hosttest.Mirror(text)
						require.Equal(t, chosen, id)
						text = append(text, id)
					}
				}
			}
		})
	}
}

// Errors of the session come through, and a cancelled context ends a completion; what was running is retired.
func TestErrorsComeThrough(t *testing.T) {
	e := engine.New(open(t, 2), host.BatchOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	jobs := []prompts.Job{{Line: 1, IDs: []int{4, 5}, Most: 3}, {Line: 2, IDs: []int{6}, Most: 3}}
	err := prompts.Complete(ctx, e, jobs, prompts.Options{Sampling: sampling.Greedy()},
		func(prompts.Result) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	for range 2 {
		_, _, err := e.Admit([]int{1}, serve.Options{Logits: true})
		require.NoError(t, err)
	}
	_, _, err = e.Admit([]int{1}, serve.Options{})
	require.ErrorIs(t, err, host.ErrFull)
	e.Replace(0, 4096)
	var token *host.TokenError
	_, err = e.Step(t.Context())
	require.ErrorAs(t, err, &token)
	err = prompts.Complete(t.Context(), e, jobs, prompts.Options{Sampling: sampling.Greedy()},
		func(prompts.Result) error { return os.ErrClosed })
	var line *prompts.LineError
	require.ErrorAs(t, err, &line)
}

// A sequence for the state after its prompt gives that and no token, alongside others, with passes of several sequences
// and without.
func TestStates(t *testing.T) {
	for _, sequences := range []int{1, 4} {
		e := engine.New(open(t, sequences), host.BatchOptions{})
		require.Equal(t, 64, e.Limits().Hidden)
		rng := rand.New(rand.NewPCG(1, uint64(sequences)))
		for range 10 {
			prompts := map[serve.Sequence][]int{}
			for range sequences {
				ids := []int{5, 6, 7}
				for range rng.IntN(90) {
					ids = append(ids, rng.IntN(4096))
				}
				s, _, err := e.Admit(ids, serve.Options{State: true})
				require.NoError(t, err)
				prompts[s] = ids
			}
			for len(prompts) > 0 {
				events, err := e.Step(t.Context())
				require.NoError(t, err)
				for _, event := range events {
					hash, _ := hosttest.Mirror(prompts[event.Sequence])
					require.Equal(t, hosttest.Hidden(hash), event.State)
					e.Retire(event.Sequence)
					delete(prompts, event.Sequence)
				}
			}
		}
	}
}
