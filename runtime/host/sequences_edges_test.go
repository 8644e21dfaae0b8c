package host_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// an edge is a sequence with a prompt that ends near the last position, with one token to give or all that there is
// room for, which may begin with a stop.
type edge struct {
	ids    []int
	given  int
	most   int
	stops  []int
	logits bool
}

func edgeOf(rng *rand.Rand, maxSeq int, past [][]int) *edge {
	n := maxSeq - rng.IntN(7)
	if rng.IntN(3) == 0 {
		n = 1 + rng.IntN(maxSeq)
	}
	var ids []int
	if len(past) > 0 && rng.IntN(2) == 0 { // which some region has, or a part of it
		before := past[rng.IntN(len(past))]
		ids = slices.Clone(before[:rng.IntN(min(n, len(before))+1)])
	}
	for len(ids) < n {
		ids = append(ids, rng.IntN(4096))
	}
	e := &edge{ids: ids, most: rng.IntN(maxSeq - n + 2), logits: rng.IntN(5) == 0}
	if rng.IntN(2) == 0 {
		e.stops = []int{(&foreseeing{rng}).next(ids, 4)[rng.IntN(4)], rng.IntN(4096)}
	}
	return e
}

// Sequences give what the kernel chooses for each, with drafts and without, up to the last position, after steps that
// were cancelled, and in regions of which a part is known.
func TestSequencesAtTheirEdges(t *testing.T) {
	for _, shape := range []struct {
		sequences, ofEach int
		rows              []int
	}{{4, 2, nil}, {2, 4, []int{4}}, {2, 3, []int{2, 5}}} {
		rng := rand.New(rand.NewPCG(9, uint64(shape.ofEach)))
		s := openMixed(t, "", shape.sequences, shape.ofEach, shape.rows...)
		maxSeq := s.Info().MaxSeq
		b := s.NewBatch(host.BatchOptions{Steps: 5, Prompt: 30, Drafter: &foreseeing{rng}})
		live, past := map[int]*edge{}, [][]int{}
		for len(past) < 60 {
			for len(live) < shape.sequences && rng.IntN(3) > 0 {
				e := edgeOf(rng, maxSeq, past)
				id, _, err := b.Admit(e.ids, host.SequenceOptions{Most: e.most, Stops: e.stops, Logits: e.logits})
				require.NoError(t, err)
				if e.most == 0 {
					e.most = maxSeq - len(e.ids) + 1
				}
				live[id] = e
			}
			if rng.IntN(20) == 0 {
				cancelled, cancel := context.WithCancel(t.Context())
				cancel()
				_, err := b.Step(cancelled)
				require.True(t, err != nil || len(live) == 0)
				continue
			}
			tokens, err := b.Step(t.Context())
			require.NoError(t, err)
			for _, got := range tokens {
				e := live[got.Sequence]
				require.NotNil(t, e, "it has ended")
				_, want := hosttest.Mirror(e.ids)
				require.Equal(t, want, got.ID)
				e.given++
				require.Equal(t, e.given == e.most || !e.logits && slices.Contains(e.stops, got.ID), got.Ended)
				if e.logits && rng.IntN(2) == 0 {
					got.ID = rng.IntN(4096)
					require.NoError(t, b.Replace(got.Sequence, got.ID))
				}
				if e.ids = append(e.ids, got.ID); got.Ended {
					b.Retire(got.Sequence)
					delete(live, got.Sequence)
					past = append(past, e.ids)
				}
			}
		}
		require.Positive(t, s.Drafts().Accepted)
	}
	s := openMixed(t, "", 2, 2)
	b := s.NewBatch(host.BatchOptions{})
	for _, prompt := range [][]int{nil, make([]int, s.Info().MaxSeq+1)} {
		_, _, err := b.Admit(prompt, host.SequenceOptions{})
		require.Error(t, err)
	}
}
