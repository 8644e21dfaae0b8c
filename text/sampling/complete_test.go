package sampling

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A scripted feeder gives logits that depend on the ids so far.
type scripted struct {
	ids   []int
	fed   []int // how many ids came at once
	vocab int
}

func (f *scripted) Feed(_ context.Context, ids []int, onLogits func(int, []float32) error) (int, error) {
	f.fed = append(f.fed, len(ids))
	for _, id := range ids {
		f.ids = append(f.ids, id)
		logits := make([]float32, f.vocab)
		logits[(id+1)%f.vocab] = 1000
		if onLogits != nil {
			if err := onLogits(len(f.ids)-1, logits); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

func TestComplete(t *testing.T) {
	o := Greedy()
	o.Temperature = 1
	for _, c := range []struct {
		prompt, stops, want []int
		n                   int
		stopped             bool
	}{
		{[]int{1, 2, 3}, nil, []int{4, 5, 6}, 3, false},
		{[]int{3}, []int{9, 5}, []int{4, 5}, 10, true},
	} {
		f := &scripted{vocab: 10}
		s, err := New(o, f.vocab, c.prompt)
		require.NoError(t, err)
		var got []int
		stopped, err := Complete(context.Background(), f, s, c.prompt, c.n, c.stops, func(c Choice) error {
			got = append(got, c.ID)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.stopped, stopped)
		require.Equal(t, append(c.prompt, got[:len(got)-1]...), f.ids, "the last token is not decoded")
	}
}

// Drafts change no token: rows of logits that a draft was right for are taken one after the other, and of the first
// that it was wrong for comes the token that follows instead.
func TestDraftsChangeNothing(t *testing.T) {
	const vocab, n = 20, 60
	o := Greedy()
	o.Temperature, o.TopP, o.FrequencyPenalty, o.Seed = 0.8, 0.95, 0.1, 12
	prompt := []int{4, 2}
	logitsAfter := func(ids []int) []float32 { // what a model makes of a text: any function of it
		seed := uint64(len(ids))
		for _, id := range ids {
			seed = seed*31 + uint64(id)
		}
		return randomLogits(rand.New(rand.NewPCG(seed, 1)), vocab, 2)
	}
	alone, err := New(o, vocab, prompt)
	require.NoError(t, err)
	want := slices.Clone(prompt)
	for range n {
		c, err := alone.Next(logitsAfter(want), nil)
		require.NoError(t, err)
		want = append(want, c.ID)
	}
	rng := rand.New(rand.NewPCG(13, 14))
	verifier, err := New(o, vocab, prompt)
	require.NoError(t, err)
	got := slices.Clone(prompt)
	rounds := 0
	for ; len(got) < len(want); rounds++ {
		draft := slices.Clone(want[len(got):min(len(want), len(got)+rng.IntN(8))])
		if at := rng.IntN(8); at < len(draft) {
			draft[at] = (draft[at] + 1) % vocab
		}
		pass := append(slices.Clone(got), draft...)
		for i := range min(len(draft)+1, len(want)-len(got)) {
			c, err := verifier.Next(logitsAfter(pass[:len(pass)-len(draft)+i]), nil)
			require.NoError(t, err)
			got = append(got, c.ID)
			if i < len(draft) && draft[i] != c.ID {
				break
			}
		}
	}
	require.Equal(t, want, got)
	require.Less(t, rounds, n)
}
