package sampling

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/draft"
)

// hashed is a model of which every position's logits depend on the whole text before it.
type hashed struct {
	vocab, rows int
	text        []int
}

func (m *hashed) logits() []float32 {
	seed := uint64(len(m.text))
	for _, id := range m.text {
		seed = seed*31 + uint64(id)
	}
	return randomLogits(rand.New(rand.NewPCG(seed, 1)), m.vocab, 2)
}

func (m *hashed) Feed(_ context.Context, ids []int, each func(int, []float32) error) (int, error) {
	for _, id := range ids {
		if id < 0 || id >= m.vocab {
			return 0, fmt.Errorf("id %d", id)
		}
		m.text = append(m.text, id)
		if each != nil {
			if err := each(len(m.text)-1, m.logits()); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}
func (m *hashed) Position() int       { return len(m.text) }
func (m *hashed) PassRows() int       { return m.rows }
func (m *hashed) Rewind(to int) error { m.text = m.text[:to]; return nil }

// known drafts from a text, some of it wrong, or no ids at all, or more than it was asked for.
type known struct {
	text  []int
	wrong int // out of 4 drafts
	rng   *rand.Rand
}

func (k *known) Draft(text []int, n int) []int {
	out := append([]int{}, k.text[len(text):min(len(k.text), len(text)+n)]...)
	if len(out) > 0 && k.rng.IntN(4) < k.wrong {
		out[k.rng.IntN(len(out))] ^= 1
		switch k.rng.IntN(8) {
		case 0:
			out[0] = -1
		case 1:
			return append(out, 1, 2, 3, 4, 5, 6, 7, 8)
		}
	}
	return out
}

// With drafts the same tokens are chosen as without them, up to stop ids and the number that was asked for, and the
// model stands where it would.
func TestCompleteDrafted(t *testing.T) {
	o := Greedy()
	o.Temperature, o.TopP, o.FrequencyPenalty, o.RepetitionPenalty, o.Seed = 0.8, 0.95, 0.1, 1.1, 12
	for _, stops := range [][]int{nil, {3, 9}} {
		for rows := 1; rows <= 8; rows++ {
			for wrong := range 5 {
				for _, n := range []int{1, 2, 9, 60} {
					prompt := []int{4, 2, 7}
					complete := func(d draft.Drafter, stats *draft.Stats) (ids []int, stopped bool, at []int) {
						m := &hashed{vocab: 20, rows: rows}
						s, err := New(o, m.vocab, prompt)
						require.NoError(t, err)
						stopped, err = CompleteDrafted(t.Context(), m, s, prompt, n, stops, d, stats,
							func(c Choice) error { ids = append(ids, c.ID); return nil })
						require.NoError(t, err)
						return ids, stopped, m.text
					}
					want, stopped, at := complete(nil, nil)
					long := append(append([]int{}, prompt...), want...)
					k := &known{append(long, 1, 2, 3, 4, 5, 6, 7), wrong, rand.New(rand.NewPCG(uint64(rows), 5))}
					var stats draft.Stats
					got, alsoStopped, alsoAt := complete(k, &stats)
					require.Equal(t, want, got)
					require.Equal(t, stopped, alsoStopped)
					require.Equal(t, at, alsoAt)
					if wrong == 0 && rows > 1 && n == 60 && stops == nil {
						require.Equal(t, (n+rows-1)/rows, stats.Passes)
						require.Equal(t, stats.Drafted, stats.Accepted)
					}
				}
			}
		}
	}
}
