package host_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/text/sampling"
)

// foreseeing drafts what the kernel will choose, with mistakes, garbage, or nothing.
type foreseeing struct{ rng *rand.Rand }

// next are the n ids that the kernel chooses after a text.
func (*foreseeing) next(text []int, n int) []int {
	ids := slices.Clone(text)
	for range n {
		_, id := hosttest.Mirror(ids)
		ids = append(ids, id)
	}
	return ids[len(text):]
}

func (f *foreseeing) Draft(text []int, n int) []int {
	ids := f.next(text, n)
	switch f.rng.IntN(6) {
	case 0:
		return nil
	case 1:
		return []int{-1}
	case 2:
		ids[f.rng.IntN(n)] ^= 1
	case 3:
		return ids[:f.rng.IntN(n)]
	}
	return ids
}

// With drafts, sequences with settings of their own give what the host draws for each: some are drawn in the kernel, of
// whose penalties the rows before count, and some on the host.
func TestDraftsOfSequencesThatDraw(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	plain := openWith(t, "", host.Options{})
	for _, rows := range [][]int{nil, {4}} {
		s, rng := openMixed(t, "", 2, 4, rows...), rand.New(rand.NewPCG(5, uint64(len(rows))))
		all := map[int]*guesses{} // by the first id of a prompt
		b := s.NewBatch(host.BatchOptions{Steps: 5, Prompt: 1000, Drafter: guessesOf(all)})
		type sequence struct {
			want    []int
			sampler *sampling.Sampler
		}
		texts, ended := map[int]*sequence{}, 0
		for ended < 16 {
			for len(texts) < 2 && rng.IntN(3) > 0 {
				prompt := []int{len(all), rng.IntN(4096)}
				o := anyOptions(rng)
				most := 1 + rng.IntN(60)
				x := &sequence{want: onHost(t, plain, o, prompt, most, nil)}
				all[prompt[0]] = &guesses{rng: rng, text: append(slices.Clone(prompt), x.want...)}
				of := host.SequenceOptions{Most: most, Sampling: o}
				if rng.IntN(4) == 0 {
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
		d := s.Drafts()
		require.Positive(t, d.Accepted)
		require.Less(t, d.Accepted, d.Drafted)
	}
}

// guessesOf drafts for several texts.
type guessesOf map[int]*guesses

func (g guessesOf) Draft(text []int, n int) []int { return g[text[0]].Draft(text, n) }

// Drafts that are rejected are asked for less and less often, and launches without drafts become longer; a sequence
// whose drafts are right is not held back by another one.
func TestPaceOfSequences(t *testing.T) {
	s := openMixed(t, "", 2, 4)
	wrong, right := []int{5, 6, 7}, []int{8, 9}
	asked := map[int]int{}
	b := s.NewBatch(host.BatchOptions{Steps: 16, Drafter: drafterOf(func(text []int, n int) []int {
		asked[text[0]]++
		ids := (&foreseeing{}).next(text, n)
		if text[0] == wrong[0] {
			ids[0] ^= 1
		}
		return ids
	})})
	for _, prompt := range [][]int{wrong, right} {
		_, _, err := b.Admit(prompt, host.SequenceOptions{})
		require.NoError(t, err)
	}
	given, steps := map[int]int{}, 0
	for ; given[1] < 100; steps++ {
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, got := range tokens {
			given[got.Sequence]++
		}
	}
	require.Equal(t, steps, s.Drafts().Passes, "the one that is right has drafts in every step")
	require.Equal(t, 3*steps, s.Drafts().Accepted)
	require.Equal(t, steps, given[0], "the other one has a token in each")
	require.Less(t, asked[wrong[0]], 5)
	b.Retire(1)
	passes := s.Drafts().Passes
	tokens, err := b.Step(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, tokens)
	require.LessOrEqual(t, s.Drafts().Passes, passes+1)
}

type drafterOf func(text []int, n int) []int

func (f drafterOf) Draft(text []int, n int) []int { return f(text, n) }

// A pass of drafts that was aborted leaves every sequence where it was.
func TestStallOfDrafts(t *testing.T) {
	s := openMixed(t, "stall_at=4", 2, 4)
	b, texts := s.NewBatch(host.BatchOptions{Drafter: drafterOf((&foreseeing{}).next)}), [][]int{{5, 6}, {7, 8, 9}}
	for i, x := range texts {
		id, _, err := b.Admit(x, host.SequenceOptions{Most: 5})
		require.NoError(t, err)
		require.Equal(t, i, id)
	}
	var stall *host.StallError
	_, err := b.Step(t.Context())
	require.ErrorAs(t, err, &stall)
	require.Zero(t, s.Drafts())
	for ended := 0; ended < 2; {
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, got := range tokens {
			_, want := hosttest.Mirror(texts[got.Sequence])
			require.Equal(t, want, got.ID)
			texts[got.Sequence] = append(texts[got.Sequence], got.ID)
			if got.Ended {
				ended++
			}
		}
	}
	require.Len(t, texts[0], 7)
	require.Len(t, texts[1], 8)
	require.Equal(t, s.Drafts().Drafted, s.Drafts().Accepted)
}
