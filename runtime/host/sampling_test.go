package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/sampling"
)

// draws are options that the kernel chooses by.
func draws(temperature float64, seed uint64) *sampling.Options {
	o := sampling.Greedy()
	o.Temperature, o.Seed = temperature, seed
	return &o
}

// onHost continues a prompt by tokens that are chosen from the logits of each step.
func onHost(t *testing.T, s *host.Session, o *sampling.Options, prompt []int, n int, stops []int) (ids []int) {
	t.Helper()
	s.Reset()
	sampler, err := sampling.New(*o, s.Facts().Model.Vocab, prompt)
	require.NoError(t, err)
	_, err = sampling.Complete(t.Context(), s, sampler, prompt, n, stops, func(c sampling.Choice) error {
		ids = append(ids, c.ID)
		return nil
	})
	require.NoError(t, err)
	return ids
}

// A text is the same whether the kernel draws its tokens, many in a launch, or the host does from the logits; across
// variants, with stop ids, and with drafts of any quality.
func TestKernelDrawsWhatTheSamplerDraws(t *testing.T) {
	for _, settings := range []string{"", variants} {
		for _, rows := range []int{1, 2, 8} {
			t.Run(fmt.Sprint(settings, rows), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(rows), 3))
				plain := openWith(t, settings, host.Options{})
				s := plain
				guess := &guesses{rng: rng}
				if rows > 1 {
					s = openPasses(t, settings, rows)
					s.SetDrafter(guess)
				}
				for i := range 6 {
					prompt := make([]int, 1+rng.IntN(30))
					for k := range prompt {
						prompt[k] = rng.IntN(4096)
					}
					n, stops := 1+rng.IntN(129-len(prompt)), [][]int{nil, {1, 2, 3, rng.IntN(4096)}}[i%2]
					o := draws([]float64{0, 0.01, 0.2, 1, 7}[rng.IntN(5)], rng.Uint64())
					want := onHost(t, plain, o, prompt, n, stops)
					guess.text = append(slices.Clone(prompt), want...)
					s.Reset()
					require.True(t, s.Choose(o))
					got, err := s.Complete(t.Context(), prompt, n, stops, nil)
					require.NoError(t, err)
					require.Equal(t, want, got.IDs, "%v", o)
				}
				if d := s.Drafts(); rows > 1 {
					require.Positive(t, d.Accepted)
					require.Less(t, d.Accepted, d.Drafted)
				}
			})
		}
	}
}

// guesses drafts what a text has next, or something else.
type guesses struct {
	rng  *rand.Rand
	text []int
}

func (g *guesses) Draft(text []int, n int) []int {
	ids := slices.Clone(g.text[min(len(text), len(g.text)):])
	ids = ids[:min(n, len(ids))]
	if len(ids) > 0 && g.rng.IntN(3) == 0 {
		ids[g.rng.IntN(len(ids))] ^= 1
	}
	return ids
}

// Sequences of a pass have settings of their own: some are drawn in the kernel, some on the host, and others greedily.
func TestSequencesDrawByTheirOwnSettings(t *testing.T) {
	plain := openWith(t, "", host.Options{})
	s := openSequences(t, "", 4)
	b, rng := s.NewBatch(host.BatchOptions{Steps: 5, Prompt: 1000}), rand.New(rand.NewPCG(4, 4))
	type sequence struct {
		want    []int
		sampler *sampling.Sampler
	}
	texts, ended := map[int]*sequence{}, 0
	for ended < 40 {
		for len(texts) < 4 && rng.IntN(3) > 0 {
			prompt := []int{rng.IntN(4096), rng.IntN(4096)}[:1+rng.IntN(2)]
			o := draws([]float64{0, 0.3, 2}[rng.IntN(3)], rng.Uint64())
			most := 1 + rng.IntN(60)
			x := &sequence{want: onHost(t, plain, o, prompt, most, nil)}
			choice, can := host.SamplingOf(o)
			require.True(t, can)
			of := host.SequenceOptions{Most: most, Sampling: choice}
			if rng.IntN(3) == 0 {
				var err error
				x.sampler, err = sampling.New(*o, 4096, prompt)
				require.NoError(t, err)
				of.Logits, of.Sampling = true, host.Sampling{}
			}
			id, _, err := b.Admit(prompt, of)
			require.NoError(t, err)
			texts[id] = x
		}
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, got := range tokens {
			x := texts[got.Sequence]
			if x.sampler != nil {
				c, err := x.sampler.Next(got.Logits, nil)
				require.NoError(t, err)
				require.NoError(t, b.Replace(got.Sequence, c.ID))
				got.ID = c.ID
			}
			require.Equal(t, x.want[0], got.ID)
			if x.want = x.want[1:]; got.Ended {
				require.Empty(t, x.want)
				b.Retire(got.Sequence)
				delete(texts, got.Sequence)
				ended++
			}
		}
	}
}

// Logits that are no numbers leave no token to draw: the error is that of the host's sampler, and the session can be
// used again.
func TestNoTokenIsLeftToDraw(t *testing.T) {
	s := openSequences(t, "nan_at=20", 2)
	require.True(t, s.Choose(draws(1, 5)))
	for range 2 {
		s.Reset()
		done, err := s.Complete(t.Context(), []int{3, 4, 5}, 50, nil, nil)
		var logits *sampling.LogitsError
		require.ErrorAs(t, err, &logits)
		require.Equal(t, 21, logits.Position)
		require.Len(t, done.IDs, 18)
		require.Equal(t, 20, s.Position())
	}
	b := s.NewBatch(host.BatchOptions{Steps: 30})
	for _, prompt := range [][]int{{7}, {8, 9}} {
		_, _, err := b.Admit(prompt, host.SequenceOptions{Sampling: host.Sampling{Temperature: 1}})
		require.NoError(t, err)
	}
	_, err := b.Step(t.Context())
	var logits *sampling.LogitsError
	require.ErrorAs(t, err, &logits)
	require.Equal(t, 21, logits.Position)

	s.Reset()
	require.True(t, s.Choose(draws(0, 0)))
	require.False(t, s.Choose(&sampling.Options{Temperature: 1, TopK: 5, TopP: 1, RepetitionPenalty: 1, LogProbs: -1}))
	done, err := s.Complete(context.Background(), []int{3, 4, 5}, 50, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3, 4, 5}, 50), done.IDs)
}
