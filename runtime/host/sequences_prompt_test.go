package host_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// What the region of another sequence has of a prompt is copied, also while that one is decoded, and also where several
// come with the same prompt; but not for a few tokens. Each gives what it gives alone, and so does the other one.
func TestPromptsThatOthersHaveRead(t *testing.T) {
	s, rng := openSequences(t, "", 4), rand.New(rand.NewPCG(9, 9))
	b := s.NewBatch(host.BatchOptions{Prompt: 60})
	prompt := make([]int, 50)
	for i := range prompt {
		prompt[i] = 2 + rng.IntN(4000)
	}
	texts := map[int][]int{}
	admit := func(ids []int, cached int) {
		t.Helper()
		id, known, err := b.Admit(ids, host.SequenceOptions{})
		require.NoError(t, err)
		require.Equal(t, cached, known)
		texts[id] = slices.Clone(ids)
	}
	step := func() (given int) {
		t.Helper()
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, got := range tokens {
			_, want := hosttest.Mirror(texts[got.Sequence])
			require.Equal(t, want, got.ID)
			texts[got.Sequence] = append(texts[got.Sequence], got.ID)
		}
		return len(tokens)
	}
	admit(prompt, 0)
	admit(prompt, 0) // nothing is read yet
	require.Equal(t, 2, step(), "60 tokens are read in a step, which two prompts of 50 have together once")
	admit(append(slices.Clone(prompt[:30]), 7, 8), 30)
	admit(append(slices.Clone(prompt[:3]), 9, 10, 11), 0)
	for range 5 {
		require.Equal(t, 4, step())
	}
	b.Retire(1)
	admit(append(slices.Clone(texts[0]), 12), len(texts[0])-1) // the last one that was chosen is not decoded
	for range 5 {
		step()
	}
}
