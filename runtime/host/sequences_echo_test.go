package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

// rowsOf are the logits after each of some tokens, decoded one by one.
func rowsOf(t *testing.T, s *host.Session, ids []int) (rows [][]float32) {
	t.Helper()
	s.Reset()
	for _, id := range ids {
		_, err := s.Feed(t.Context(), []int{id}, func(_ int, l []float32) error {
			rows = append(rows, slices.Clone(l))
			return nil
		})
		require.NoError(t, err)
	}
	return rows
}

// Prompts whose logits are wanted come token by token, with the logits that single steps have, to the bit; then what
// follows. So it is with builds of one sequence and of several, with a kernel for prompts and without, across variants,
// alongside others that want nothing of the kind, after a step that was aborted, and whatever the cache has of the
// prompt. A sequence that is held reads nothing.
func TestEchoes(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	hosttest.NeedDriver(t)
	for _, c := range []struct {
		settings          string
		sequences, prompt int
	}{{"", 1, 0}, {"", 1, 64}, {variants, 1, 16}, {"", 4, 0}, {"", 4, 64}, {"", 2, 128}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			open := func(edit func(*host.Facts)) *host.Session {
				s, err := host.Open(t.Context(), hosttest.Build(t, c.settings, edit), host.Options{})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				return s
			}
			plain := open(nil)
			s := open(func(f *host.Facts) {
				if f.Prompt = c.prompt; c.sequences > 1 {
					hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: c.sequences})
				}
			})
			b, rng := s.NewBatch(host.BatchOptions{Steps: 4}), rand.New(rand.NewPCG(6, 6))
			type sequence struct {
				text   []int
				rows   [][]float32 // that are due
				echo   bool
				held   bool
				prompt int
				at     int // tokens of the prompt and the output that have come, or are not wanted
				most   int
			}
			all, ended, several, again := map[int]*sequence{}, 0, false, []int{}
			for ended < 16 {
				for len(all) < c.sequences && rng.IntN(3) > 0 {
					x := &sequence{echo: rng.IntN(3) > 0, most: 1 + rng.IntN(4)}
					x.text = append(x.text, again[:min(len(again), rng.IntN(99))]...)
					for range 1 + rng.IntN(60) {
						x.text = append(x.text, rng.IntN(4096))
					}
					x.text = x.text[:min(len(x.text), 120)]
					x.prompt, again = len(x.text), slices.Clone(x.text)
					for range x.most {
						_, next := hosttest.Mirror(x.text)
						x.text = append(x.text, next)
					}
					x.rows = rowsOf(t, plain, x.text[:len(x.text)-1])
					if x.at = x.prompt; x.echo {
						x.at = 1
					}
					id, cached, err := b.Admit(x.text[:x.prompt], host.SequenceOptions{Most: x.most, Logits: x.echo,
						Echo: x.echo})
					require.NoError(t, err)
					require.False(t, x.echo && cached > 0)
					all[id] = x
				}
				for id, x := range all {
					x.held = rng.IntN(4) == 0
					b.Hold(id, x.held)
				}
				ctx, leave := context.WithCancel(t.Context())
				if rng.IntN(4) == 0 {
					leave()
				}
				tokens, err := b.Step(ctx)
				if leave(); err != nil {
					require.ErrorIs(t, err, context.Canceled)
					continue
				}
				given := map[int]int{}
				for _, got := range tokens {
					x := all[got.Sequence]
					require.False(t, x.held)
					require.Equal(t, x.at < x.prompt, got.Given)
					require.Equal(t, x.text[x.at], got.ID)
					if x.echo {
						require.Equal(t, x.rows[x.at-1], got.Logits)
					}
					x.at++
					given[got.Sequence]++
					several = several || got.Given && len(all) > 1
					if got.Ended {
						require.Len(t, x.text, x.at)
						b.Retire(got.Sequence)
						delete(all, got.Sequence)
						ended++
					}
				}
				for _, n := range given {
					require.LessOrEqual(t, n, 34, "rows in a step")
				}
			}
			require.Equal(t, c.sequences > 1, several)
		})
	}
}
