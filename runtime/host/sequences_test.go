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
	"amkc/text/sampling"
)

// openSequences opens a build that has a kernel for passes of n sequences, and some for passes of rows.
func openSequences(t *testing.T, settings string, sequences int, rows ...int) *host.Session {
	t.Helper()
	return openMixed(t, settings, sequences, 1, rows...)
}

// openMixed opens one that has a kernel for several rows of each of these sequences too.
func openMixed(t *testing.T, settings string, sequences, ofEach int, rows ...int) *host.Session {
	t.Helper()
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, settings, func(f *host.Facts) {
		passes(rows...)(f)
		hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: sequences})
		if ofEach > 1 {
			hosttest.AddPasses(f, shape.Pass{Rows: ofEach, Sequences: sequences})
		}
	})
	s, err := host.Open(t.Context(), dir, host.Options{
		Reference: func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// A text is what a sequence of a test has been given and has given.
type text struct {
	ids   []int
	given int
	most  int
	host.SequenceOptions
}

func (x *text) replaced() bool { return x.Logits && x.Sampling == nil }

// Sequences join and leave at any time, with prompts of any length, logits or not, or for the state after a prompt
// alone; each gives what its text alone makes it give. So it does where drafts of any quality are verified, of several
// sequences, of one that is alone, or both.
func TestSequencesGiveWhatTheyGiveAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	guess := &foreseeing{rng: rand.New(rand.NewPCG(7, 7))}
	for _, c := range []struct {
		sequences, ofEach int
		rows              []int
		o                 host.BatchOptions
	}{{2, 1, nil, host.BatchOptions{}}, {8, 1, []int{8}, host.BatchOptions{Steps: 5, Prompt: 7}},
		{3, 1, []int{4}, host.BatchOptions{Steps: 64, Prompt: 1000}},
		{2, 4, nil, host.BatchOptions{Drafter: guess}},
		{4, 2, []int{8}, host.BatchOptions{Steps: 5, Prompt: 7, Drafter: guess}},
		{2, 3, []int{4}, host.BatchOptions{Steps: 64, Prompt: 1000, Drafter: guess}},
		{3, 1, []int{4}, host.BatchOptions{Steps: 16, Drafter: guess}},
		{3, 1, nil, host.BatchOptions{Drafter: guess}}} {
		t.Run(fmt.Sprint(c.sequences, c.ofEach, c.rows, c.o.Steps, c.o.Prompt, c.o.Drafter != nil), func(t *testing.T) {
			s := openMixed(t, "", c.sequences, c.ofEach, c.rows...)
			require.Equal(t, c.sequences, s.Sequences())
			b, rng := s.NewBatch(c.o), rand.New(rand.NewPCG(uint64(c.sequences), 1))
			texts, ended, cachedTokens := map[int]*text{}, 0, 0
			common := make([]int, 40)
			for i := range common {
				common[i] = 2 + rng.IntN(4000)
			}
			for ended < 60 {
				most := c.sequences
				if c.ofEach == 1 && c.o.Drafter != nil { // drafts are for a sequence that is alone
					most = 1 + rng.IntN(2)*rng.IntN(c.sequences)
				}
				for len(texts) < most && rng.IntN(3) > 0 {
					x := &text{ids: slices.Clone(common[:1+rng.IntN(40)])}
					for range rng.IntN(20) {
						x.ids = append(x.ids, 2+rng.IntN(4000))
					}
					x.most = 1 + rng.IntN(129-len(x.ids))
					x.SequenceOptions = host.SequenceOptions{Most: x.most, Logits: rng.IntN(3) == 0}
					if x.Logits && rng.IntN(2) == 0 { // of what the kernel chooses
						x.Sampling = new(sampling.Greedy())
					}
					if !x.replaced() {
						x.Stops = []int{rng.IntN(2000), 1}
					}
					if ahead := guess.next(x.ids, 9); !x.replaced() && c.o.Drafter != nil && rng.IntN(3) == 0 {
						x.Stops = ahead[rng.IntN(9):][:1]
					}
					if rng.IntN(4) == 0 {
						x.most, x.SequenceOptions = 1, host.SequenceOptions{State: true}
					}
					id, cached, err := b.Admit(x.ids, x.SequenceOptions)
					require.NoError(t, err)
					require.Nil(t, texts[id])
					require.Less(t, cached, len(x.ids))
					cachedTokens += cached
					texts[id] = x
				}
				tokens, err := b.Step(t.Context())
				require.NoError(t, err)
				for _, got := range tokens {
					x := texts[got.Sequence]
					require.NotNil(t, x, "a result of a sequence that is not there")
					hash, want := hosttest.Mirror(x.ids)
					if x.State {
						require.Equal(t, host.Token{Sequence: got.Sequence, State: hosttest.Hidden(hash), Ended: true},
							got)
						x.given++
						continue
					}
					require.Equal(t, want, got.ID)
					require.Equal(t, x.Logits, got.Logits != nil)
					x.given++
					require.Equal(t, x.given == x.most || slices.Contains(x.Stops, got.ID), got.Ended)
					if x.Logits {
						require.Equal(t, want, slices.Index(got.Logits, slices.Max(got.Logits)))
					}
					if x.replaced() {
						got.ID = 2 + rng.IntN(4000) // another than the kernel has chosen
						require.NoError(t, b.Replace(got.Sequence, got.ID))
					}
					x.ids = append(x.ids, got.ID)
				}
				for id, x := range texts {
					last := x.given > 0 && (x.given == x.most || slices.Contains(x.Stops, x.ids[len(x.ids)-1]))
					if last || rng.IntN(40) == 0 {
						b.Retire(id)
						delete(texts, id)
						ended++
					}
				}
			}
			require.Positive(t, cachedTokens, "prompts begin alike")
			d := s.Drafts()
			if verifies := c.ofEach > 1 || len(c.rows) > 0; c.o.Drafter == nil || !verifies {
				require.Zero(t, d)
				return
			}
			require.Positive(t, d.Accepted)
			require.Less(t, d.Accepted, d.Drafted)
			require.Greater(t, d.Drafted, d.Passes)
		})
	}
}

// What a batch cannot take is refused, and changes nothing.
func TestBatchRefuses(t *testing.T) {
	s := openSequences(t, "", 2)
	b := s.NewBatch(host.BatchOptions{})
	var position *host.PositionError
	var token *host.TokenError
	_, _, err := b.Admit(nil, host.SequenceOptions{})
	require.ErrorContains(t, err, "no tokens")
	_, _, err = b.Admit(make([]int, 129), host.SequenceOptions{})
	require.ErrorAs(t, err, &position)
	_, _, err = b.Admit(make([]int, 128), host.SequenceOptions{Most: 2})
	require.ErrorAs(t, err, &position)
	_, _, err = b.Admit([]int{4096}, host.SequenceOptions{})
	require.ErrorAs(t, err, &token)
	for range 2 {
		_, _, err := b.Admit([]int{1}, host.SequenceOptions{Logits: true})
		require.NoError(t, err)
	}
	_, _, err = b.Admit([]int{1}, host.SequenceOptions{})
	require.ErrorIs(t, err, host.ErrFull)
	require.ErrorAs(t, b.Replace(0, -1), &token)
	b.Retire(0)
	id, _, err := b.Admit(make([]int, 128), host.SequenceOptions{})
	require.NoError(t, err)
	require.Zero(t, id)
	require.NoError(t, s.Close())
	_, err = b.Step(t.Context())
	require.ErrorIs(t, err, host.ErrClosed)
}

// A launch that was aborted leaves every sequence where it was.
func TestStallOfABatch(t *testing.T) {
	s := openSequences(t, "stall_at=3", 3)
	b, texts := s.NewBatch(host.BatchOptions{Steps: 4}), [][]int{{5, 6}, {7, 8, 9}, {10}}
	for i, x := range texts {
		id, _, err := b.Admit(x, host.SequenceOptions{})
		require.NoError(t, err)
		require.Equal(t, i, id)
	}
	var stall *host.StallError
	_, err := b.Step(t.Context())
	require.ErrorAs(t, err, &stall)
	tokens, err := b.Step(t.Context())
	require.NoError(t, err)
	require.Len(t, tokens, 12)
	for _, got := range tokens {
		_, want := hosttest.Mirror(texts[got.Sequence])
		require.Equal(t, want, got.ID)
		texts[got.Sequence] = append(texts[got.Sequence], got.ID)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Step(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// Passes of several sequences come last, one of a row of each and after it one of several rows of each at most, of as
// many as a launch has positions for.
func TestPassesOfTheManifest(t *testing.T) {
	for _, bad := range [][]shape.Pass{{{Rows: 1, Sequences: 9}}, {{Rows: 2, Sequences: 2}},
		{{Rows: 1, Sequences: 4}, {Rows: 2, Sequences: 2}}, {{Rows: 1, Sequences: 4}, {Rows: 3, Sequences: 4}},
		{{Rows: 1, Sequences: 2}, {Rows: 2, Sequences: 2}, {Rows: 3, Sequences: 2}}, {{Rows: 1, Sequences: 1}},
		{{Rows: 1, Sequences: 2}, {Rows: 8}}, {{Rows: 1, Sequences: 2}, {Rows: 1, Sequences: 4}}, {{Rows: 1}}} {
		dir := hosttest.Build(t, "", func(f *host.Facts) { hosttest.AddPasses(f, bad...) })
		_, err := host.ReadFacts(dir)
		require.ErrorContains(t, err, "facts.passes has one of")
	}
}

// Each sequence has a cache of its own.
func TestFootprintOfSequences(t *testing.T) {
	i := host.Info{SMs: 4, Vocab: 10, MaxSeq: 64, WeightBytes: 1 << 20, CacheBytes: 10 << 20}
	require.EqualValues(t, 10<<20, i.Footprint(1, 0).Cache)
	require.EqualValues(t, 30<<20, i.Footprint(3, 0).Cache)
	require.Equal(t, 32, i.Footprint(3, 0).Fits(i.Footprint(3, 0).Bytes()-10<<20))
}

// The check compares passes of several sequences with single tokens, and finds logits that differ by a bit and rows
// that a sequence which is absent has lost.
func TestCheckComparesSequences(t *testing.T) {
	for _, n := range []int{2, 8} {
		s := openSequences(t, "", n, 8)
		r, err := s.Check(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, r.Passed, "%v", r.Failures)
		require.True(t, r.Passes[0].Equal)
		require.Equal(t, 16*3*n, r.Passes[0].Compared)
		require.Contains(t, r.Passes[0].String(), "in 16 rounds, equal to those of single tokens to the bit")
		require.Zero(t, s.Position())
	}
	for settings, says := range map[string]string{"batch_off=1": "in a pass of several",
		"batch_writes=1": "after a pass without it"} {
		s := openSequences(t, settings, 4)
		r, err := s.Check(t.Context(), nil)
		require.NoError(t, err)
		require.False(t, r.Passed)
		require.False(t, r.Passes[0].Equal)
		require.Contains(t, r.Failures[0], says)
	}
}

// The same of passes of several rows of each, of which some are wrong.
func TestCheckComparesRowsOfSequences(t *testing.T) {
	for _, n := range [][2]int{{2, 4}, {4, 2}, {2, 3}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := openMixed(t, "", n[0], n[1], 8)
			r, err := s.Check(t.Context(), nil)
			require.NoError(t, err)
			require.True(t, r.Passed, "%v", r.Failures)
			require.True(t, r.Passes[0].Equal)
			require.Equal(t, 16*3*n[0], r.Passes[0].Compared)
			require.True(t, r.Passes[1].Equal)
			require.Greater(t, r.Passes[1].Compared, 16*n[0])
			require.Less(t, r.Passes[1].Compared, 16*n[0]*n[1], "some rows are wrong")
			require.Contains(t, r.Passes[1].String(),
				fmt.Sprintf("passes of %d rows of each of %d sequences", n[1], n[0]))
		})
	}
	for settings, says := range map[string]string{"mixed_off=1": "in a pass of several",
		"mixed_writes=1": "after a pass without it"} {
		t.Run(settings, func(t *testing.T) {
			s := openMixed(t, settings, 4, 2)
			r, err := s.Check(t.Context(), nil)
			require.NoError(t, err)
			require.False(t, r.Passed)
			require.True(t, r.Passes[0].Equal)
			require.False(t, r.Passes[1].Equal)
			require.Contains(t, r.Failures[0], says)
		})
	}
}

// A state that was computed in a step that failed is computed again in the next.
func TestStatesOfAStepThatFails(t *testing.T) {
	s := openSequences(t, "stall_at=2", 3)
	b := s.NewBatch(host.BatchOptions{})
	_, _, err := b.Admit([]int{5, 6}, host.SequenceOptions{State: true})
	require.NoError(t, err)
	_, _, err = b.Admit([]int{7, 8, 9}, host.SequenceOptions{})
	require.NoError(t, err)
	var stall *host.StallError
	for range 9 {
		if _, err = b.Step(t.Context()); err != nil {
			break
		}
	}
	require.ErrorAs(t, err, &stall)
	tokens, err := b.Step(t.Context())
	require.NoError(t, err)
	hash, _ := hosttest.Mirror([]int{5, 6})
	_, want := hosttest.Mirror([]int{7, 8, 9})
	require.Equal(t, []host.Token{{Sequence: 0, State: hosttest.Hidden(hash), Ended: true},
		{Sequence: 1, ID: want}}, tokens)
}
