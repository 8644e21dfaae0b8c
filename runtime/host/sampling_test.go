package host_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/text/sampling"
)

// anyOptions are some that the kernel chooses by: of a text of few ids, so that penalties tell.
func anyOptions(rng *rand.Rand) *sampling.Options {
	o := sampling.Greedy()
	o.Temperature, o.Seed = []float64{0, 0.01, 0.2, 1, 7}[rng.IntN(5)], rng.Uint64()
	if rng.IntN(3) == 0 {
		return &o
	}
	o.TopK = []int{0, 1, 5, 300, 5000}[rng.IntN(5)]
	o.TopP = []float64{1, 0, 0.3, 0.95, 0.9999}[rng.IntN(5)]
	o.MinP = []float64{0, 0.01, 0.4, 1}[rng.IntN(4)]
	if rng.IntN(2) == 0 {
		o.RepetitionPenalty, o.FrequencyPenalty, o.PresencePenalty = 1+rng.Float64(), rng.Float64()/3, rng.Float64()-0.5
	}
	if rng.IntN(2) == 0 {
		o.Bias = map[int]float64{}
		for range 20 {
			o.Bias[rng.IntN(4096)] = []float64{math.Inf(-1), 2.5, -1, 0.7}[rng.IntN(4)]
		}
	}
	return &o
}

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
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
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
				for i := range 4 {
					prompt := make([]int, 1+rng.IntN(30))
					for k := range prompt {
						prompt[k] = rng.IntN(4096)
					}
					n, stops := 1+rng.IntN(129-len(prompt)), [][]int{nil, {1, 2, 3, rng.IntN(4096)}}[i%2]
					o := anyOptions(rng)
					want := onHost(t, plain, o, prompt, n, stops)
					guess.text = append(slices.Clone(prompt), want...)
					s.Reset()
					require.True(t, s.Choose(o, sampling.Text{Prompt: prompt}))
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
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	plain := openWith(t, "", host.Options{})
	s := openSequences(t, "", 4)
	b, rng := s.NewBatch(host.BatchOptions{Steps: 5, Prompt: 1000}), rand.New(rand.NewPCG(4, 4))
	type sequence struct {
		want    []int
		sampler *sampling.Sampler
	}
	texts, ended := map[int]*sequence{}, 0
	for ended < 24 {
		for len(texts) < 4 && rng.IntN(3) > 0 {
			prompt := []int{rng.IntN(4096), rng.IntN(4096)}[:1+rng.IntN(2)]
			o := anyOptions(rng)
			most := 1 + rng.IntN(60)
			x := &sequence{want: onHost(t, plain, o, prompt, most, nil)}
			of := host.SequenceOptions{Most: most, Sampling: o}
			if rng.IntN(3) == 0 {
				var err error
				x.sampler, err = sampling.New(*o, 4096, prompt)
				require.NoError(t, err)
				of.Logits, of.Sampling = true, nil
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

// Logits that are not numbers leave no token to draw: the error is that of the host's sampler, and the session can be
// used again. What was chosen before counts.
func TestNoTokenIsLeftToDraw(t *testing.T) {
	s := openSequences(t, "nan_at=20", 2)
	prompt := []int{3, 4, 5}
	penalised := draws(0, 0)
	penalised.RepetitionPenalty = 1.5
	for _, o := range []*sampling.Options{draws(1, 5), penalised} {
		s.Reset()
		require.True(t, s.Choose(o, sampling.Text{Prompt: prompt}))
		done, err := s.Complete(t.Context(), prompt, 50, nil, nil)
		var logits *sampling.LogitsError
		require.ErrorAs(t, err, &logits)
		require.Equal(t, 21, logits.Position)
		require.Len(t, done.IDs, 18)
		require.Equal(t, 20, s.Position())
	}
	s.Reset()
	o := draws(0, 0)
	o.LogProbs = 0
	require.False(t, s.Choose(o, sampling.Text{Prompt: prompt}))
	require.True(t, s.Choose(draws(0, 0), sampling.Text{Prompt: prompt}))
	done, err := s.Complete(context.Background(), prompt, 50, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy(prompt, 50), done.IDs)
}

// A sequence whose logits leave it no token ends alone: one alongside it that draws goes on, and one that takes the
// largest logit has the token that it would have had on its own.
func TestSequencesEndAlone(t *testing.T) {
	for _, ofEach := range []int{1, 2} { // with two rows of each, there are drafts
		s := openMixed(t, "nan_at=20", 4, ofEach)
		o := host.BatchOptions{Steps: 30}
		if ofEach > 1 {
			o.Drafter = &foreseeing{rng: rand.New(rand.NewPCG(1, 2))}
		}
		requireEndsAlone(t, s, s.NewBatch(o))
		require.Equal(t, ofEach > 1, s.Drafts().Accepted > 0)
	}
}

func requireEndsAlone(t *testing.T, s *host.Session, b *host.Batch) {
	t.Helper()
	ids, failed := map[int][]int{}, map[int]error{}
	prompts := [][]int{{7}, {8, 9}, {1, 2, 3}}
	for i, o := range []*sampling.Options{draws(1, 5), draws(1, 6), nil} {
		id, _, err := b.Admit(prompts[i], host.SequenceOptions{Most: 25, Sampling: o})
		require.NoError(t, err)
		require.Equal(t, i, id)
	}
	for range 30 {
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, got := range tokens {
			if got.Err != nil {
				require.True(t, got.Ended)
				failed[got.Sequence] = got.Err
				continue
			}
			ids[got.Sequence] = append(ids[got.Sequence], got.ID)
		}
	}
	var logits *sampling.LogitsError
	for i := range 2 {
		require.ErrorAs(t, failed[i], &logits)
		require.Equal(t, 21, logits.Position)
		require.Len(t, ids[i], 21-len(prompts[i]))
	}
	require.NoError(t, failed[2])
	require.Equal(t, greedy(prompts[2], 25), ids[2])
}

// Logits that nobody draws from may be whatever they are: those after other tokens of a prompt, and after drafts that
// are wrong.
func TestLogitsThatNobodyDrawsFrom(t *testing.T) {
	plain := openWith(t, "", host.Options{})
	prompt := []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	o := draws(1, 5)
	want := onHost(t, plain, o, prompt, 3, nil)
	s := openWith(t, "nan_at=9", host.Options{})
	require.True(t, s.Choose(o, sampling.Text{Prompt: prompt}))
	got, err := s.Complete(t.Context(), prompt, 3, nil, nil)
	require.NoError(t, err)
	require.Equal(t, want, got.IDs)

	s = openPasses(t, "nan_at=15", 4)
	s.SetDrafter(&guesses{rng: rand.New(rand.NewPCG(1, 1)), text: append(slices.Clone(prompt), 1, 2, 3, 4, 5, 6)})
	require.True(t, s.Choose(o, sampling.Text{Prompt: prompt}))
	got, err = s.Complete(t.Context(), prompt, 3, nil, nil)
	require.NoError(t, err)
	require.Equal(t, want, got.IDs)
}

// Each token is chosen among those that are allowed for it, one launch after the other.
func TestAllowedTokens(t *testing.T) {
	s, rng := openSequences(t, "", 2), rand.New(rand.NewPCG(8, 8))
	masks := make([]sampling.Mask, 12)
	for i := range masks {
		masks[i] = sampling.NewMask(4096, rng.IntN(4096), rng.IntN(4096), rng.IntN(4096))
	}
	for _, o := range []*sampling.Options{draws(0, 0), draws(2, 3), anyOptions(rng)} {
		o.Bias = nil // -inf of all that are allowed would leave none
		prompt := []int{5, 6, 7}
		sampler, err := sampling.New(*o, 4096, prompt)
		require.NoError(t, err)
		s.Reset()
		b := s.NewBatch(host.BatchOptions{Steps: 9})
		id, _, err := b.Admit(prompt, host.SequenceOptions{Sampling: o, Allowed: masks[0]})
		require.NoError(t, err)
		text, fed := sampling.Text{Prompt: prompt}, 0
		for i, mask := range masks {
			b.Allow(id, mask)
			tokens, err := b.Step(t.Context())
			require.NoError(t, err)
			require.Len(t, tokens, 1)

			s.Reset()
			var want sampling.Choice
			ids := slices.Concat(text.Prompt, text.Output)
			fed = len(ids)
			_, err = s.Feed(t.Context(), ids[:fed-1], nil)
			require.NoError(t, err)
			_, err = s.Feed(t.Context(), ids[fed-1:], func(_ int, logits []float32) (err error) {
				want, err = sampler.Next(logits, mask)
				return err
			})
			require.NoError(t, err)
			require.Equal(t, want.ID, tokens[0].ID, "token %d by %v", i, o)
			require.NoError(t, s.Rewind(fed-1))
			text.Allowed = mask
			require.True(t, s.Choose(o, text))
			next, err := s.Feed(t.Context(), ids[fed-1:], nil)
			require.NoError(t, err)
			require.Equal(t, want.ID, next, "token %d by %v", i, o)
			text.Output = append(text.Output, next)
		}
		b.Retire(id)
	}
}
