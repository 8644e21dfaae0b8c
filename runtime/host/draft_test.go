package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/text/draft"
)

// An oracle drafts what comes, wrong from the k-th id of every draft on.
type oracle struct {
	rng   *rand.Rand
	right int // out of 8 drafts
}

func (o *oracle) Draft(text []int, n int) []int {
	if o.rng.IntN(8) >= o.right {
		return []int{o.rng.IntN(4096), 1, 2, 3, -1}[:min(n, 1+o.rng.IntN(5))]
	}
	right := greedy(text, n)
	if k := o.rng.IntN(n + 1); k < n {
		right[k] = (right[k] + 1) % 4096
	}
	return right
}

// With drafts the same tokens come as without them, whatever the drafts, to stop ids and to the last position, and so
// do the tokens of the sequences after it.
func TestDraftsChangeNothing(t *testing.T) {
	for _, settings := range []string{"", variants, "eos_at=40"} {
		for _, rows := range []int{2, 5, 8} {
			for _, right := range []int{0, 5, 8} {
				t.Run(fmt.Sprint(settings, rows, right), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(uint64(rows), uint64(right)))
					plain, s := openWith(t, settings, host.Options{}), openPasses(t, settings, rows)
					require.False(t, plain.SetDrafter(draft.NGrams{}))
					require.True(t, s.SetDrafter(&oracle{rng, right}))
					for range 3 {
						prompt := make([]int, 1+rng.IntN(20))
						for i := range prompt {
							prompt[i] = rng.IntN(4096)
						}
						n := 1 + rng.IntN(129-len(prompt))
						stops := [][]int{nil, {1}}[rng.IntN(2)]
						want := complete(t, plain, prompt, n, stops)
						require.Equal(t, want, complete(t, s, prompt, n, stops))
						require.Equal(t, plain.Position(), s.Position())
					}
					if d := s.Drafts(); right == 8 {
						require.Positive(t, d.Accepted)
						require.Less(t, d.Accepted, d.Drafted)
					}
				})
			}
		}
	}
}

// complete starts a sequence, and demands that each token is emitted.
func complete(t *testing.T, s *host.Session, prompt []int, n int, stops []int) host.Completion {
	t.Helper()
	s.Reset()
	var emitted []int
	c, err := s.Complete(t.Context(), prompt, n, stops, func(id int) error {
		emitted = append(emitted, id)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, c.IDs, emitted)
	return c
}

// Drafts that are rejected are asked for less and less, where a pass takes as long as its rows one by one.
func TestUselessDraftsPause(t *testing.T) {
	s := openPasses(t, "slow_us=300", 8)
	s.SetDrafter(&oracle{rand.New(rand.NewPCG(1, 1)), 0})
	complete(t, s, []int{3}, 127, nil)
	require.LessOrEqual(t, s.Drafts().Passes, 9)
	require.Zero(t, s.Drafts().Accepted)
}

// An error of emit ends it, with the session where the tokens that were emitted leave it.
func TestEmitErrorAmongDrafts(t *testing.T) {
	s := openPasses(t, "", 8)
	s.SetDrafter(&oracle{rand.New(rand.NewPCG(1, 1)), 8})
	var got []int
	broken := errors.New("broken")
	_, err := s.Complete(t.Context(), []int{3, 4}, 100, nil, func(id int) error {
		if got = append(got, id); len(got) == 20 {
			return broken
		}
		return nil
	})
	require.ErrorIs(t, err, broken)
	require.Equal(t, greedy([]int{3, 4}, 20), got)
	at := s.Position()
	text := append([]int{3, 4}, greedy([]int{3, 4}, at)...)
	c, err := s.Complete(t.Context(), text[at:at+1], 1, nil, nil)
	require.NoError(t, err)
	require.Equal(t, text[at+1:at+2], c.IDs)
}

// With a script a text goes on as that says, with drafts and without: drafts are right where they agree with it, and
// what the kernel chooses counts again after its end, and after a check.
func TestScript(t *testing.T) {
	s := openPasses(t, "", 8)
	rng := rand.New(rand.NewPCG(1, 1))
	text := make([]int, 100)
	for i := range text {
		text[i] = rng.IntN(4096)
	}
	copy(text[60:], text[20:50])
	for _, d := range []draft.Drafter{nil, draft.NGrams{}} {
		s.SetDrafter(d)
		s.SetScript(text)
		before := s.Drafts()
		require.Equal(t, text[30:], complete(t, s, text[:30], 70, nil).IDs)
		require.Equal(t, 99, s.Position())
		if after := s.Drafts(); d != nil {
			require.Greater(t, after.Accepted-before.Accepted, 10, "30 ids come again")
		}
		got := complete(t, s, text[:98], 4, nil).IDs
		require.Equal(t, text[98:], got[:2])
		s.SetDrafter(nil)
		s.SetScript(nil)
		require.Equal(t, greedy(text[:30], 5), complete(t, s, text[:30], 5, nil).IDs)
		s.SetScript(text)
		r, err := s.Check(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, r.Passed, r.Failures)
		require.Equal(t, greedy(text[:30], 5), complete(t, s, text[:30], 5, nil).IDs)
		s.SetScript(text)
		b := s.NewBatch(host.BatchOptions{})
		_, _, err = b.Admit(text[:30], host.SequenceOptions{})
		require.NoError(t, err)
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, greedy(text[:30], 1)[0], tokens[0].ID, "texts of a batch have no script")
	}
}
