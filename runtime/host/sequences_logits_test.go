package host_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/text/sampling"
)

// A logged text is what a prompt is continued with alone: the tokens, and the logits that each was chosen from.
type logged struct {
	ids    []int
	logits [][]float32
}

// aloneWithLogits continues a prompt by tokens that the host chooses.
func aloneWithLogits(t *testing.T, s *host.Session, o *sampling.Options, prompt []int, n int) (x logged) {
	t.Helper()
	s.Reset()
	sampler, err := sampling.New(*o, s.Facts().Model.Vocab, prompt)
	require.NoError(t, err)
	_, err = s.Feed(t.Context(), prompt[:len(prompt)-1], nil)
	require.NoError(t, err)
	last := prompt[len(prompt)-1]
	for range n {
		_, err := s.Feed(t.Context(), []int{last}, func(_ int, l []float32) error {
			x.logits = append(x.logits, slices.Clone(l))
			c, err := sampler.Next(l, nil)
			last = c.ID
			return err
		})
		require.NoError(t, err)
		x.ids = append(x.ids, last)
	}
	return x
}

// Sequences whose tokens the kernel chooses give logits too, if they are wanted: those of the sequence alone, to the
// bit, alongside others that want none, with drafts and without. One that is held gives nothing meanwhile.
func TestLogitsOfWhatTheKernelChooses(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	plain := openWith(t, "", host.Options{})
	for _, c := range []struct {
		sequences, ofEach int
		rows              []int
		drafts            bool
	}{{1, 1, nil, false}, {4, 1, nil, false}, {2, 4, []int{4}, true}, {4, 2, nil, true}} {
		t.Run(fmt.Sprint(c.sequences, c.ofEach, c.rows, c.drafts), func(t *testing.T) {
			s, rng := openMixed(t, "", max(2, c.sequences), c.ofEach, c.rows...), rand.New(rand.NewPCG(6, 6))
			all := map[int]*guesses{} // by the first id of a prompt
			o := host.BatchOptions{Steps: 5, Prompt: 1000}
			if c.drafts {
				o.Drafter = guessesOf(all)
			}
			b := s.NewBatch(o)
			type sequence struct {
				logged
				logits, held bool
			}
			texts, ended, severalAtOnce := map[int]*sequence{}, 0, false
			for ended < 24 {
				for len(texts) < c.sequences && rng.IntN(3) > 0 {
					prompt := []int{len(all), rng.IntN(4096)}
					of := host.SequenceOptions{Most: 1 + rng.IntN(60), Sampling: anyOptions(rng),
						Logits: rng.IntN(2) == 0}
					x := &sequence{logged: aloneWithLogits(t, plain, of.Sampling, prompt, of.Most), logits: of.Logits}
					all[prompt[0]] = &guesses{rng: rng, text: append(slices.Clone(prompt), x.ids...)}
					id, _, err := b.Admit(prompt, of)
					require.NoError(t, err)
					texts[id] = x
				}
				for id, x := range texts {
					x.held = rng.IntN(4) == 0
					b.Hold(id, x.held)
				}
				tokens, err := b.Step(t.Context())
				require.NoError(t, err)
				given := map[int]int{}
				for _, got := range tokens {
					x := texts[got.Sequence]
					require.False(t, x.held)
					require.Equal(t, x.ids[0], got.ID)
					x.ids = x.ids[1:]
					require.Equal(t, x.logits, got.Logits != nil)
					if given[got.Sequence]++; x.logits {
						require.Equal(t, x.logged.logits[0], got.Logits)
						severalAtOnce = severalAtOnce || given[got.Sequence] > 1
					}
					x.logged.logits = x.logged.logits[1:]
					if got.Ended {
						require.Empty(t, x.ids)
						b.Retire(got.Sequence)
						delete(texts, got.Sequence)
						ended++
					}
				}
			}
			require.Equal(t, c.drafts, severalAtOnce, "drafts of sequences with logits")
			require.Equal(t, c.drafts, s.Drafts().Accepted > 0)
		})
	}
}
