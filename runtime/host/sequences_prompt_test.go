package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
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

// A part of a prompt takes no longer than it may, on machines on which a pass has any share of weights, of products and
// of attention, except for the least part; and no more parts than needed have little of a prompt. A prompt that begins
// at a later position than was measured is read no faster than that allows.
func TestPaceOfReading(t *testing.T) {
	const least, within, prompt = 64, 40 * time.Millisecond, 8192
	for _, m := range []struct{ pass, token, position float64 }{ // µs
		{4000, 64, 0.010}, {4000, 64, 0.001}, {1000, 15, 0.0119}, {500, 9.4, 0.00446}, {12000, 175, 0.01},
		{20000, 260, 0.02}, {70000, 1000, 0.1}, {0, 2, 0.001}} {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			pass := func(n, at int) time.Duration {
				attended := float64(n)*float64(at) + float64(n)*float64(n)/2
				us := max(m.pass, m.token*float64((n+least-1)/least*least)) + m.position*attended
				return time.Duration(us * 1e3)
			}
			most := func(at int) (n int) { // that may be read
				for n = least; pass(n+least, at) <= within && at+n < prompt; n += least {
				}
				return n
			}
			for _, begin := range []int{0, 6000, 8000, 100, 7000} {
				var pace host.ReadingPace
				for _, first := range []int{0, begin} {
					parts, needed := 0, 0
					for at := first; at < prompt; at += most(at) {
						needed++
					}
					for at := first; at < prompt; parts++ {
						n := min(max(least, pace.Fits(within, at, least)), prompt-at)
						if n > least {
							require.LessOrEqual(t, pass(n, at), within*21/20, "%d tokens from %d on", n, at)
						}
						pace.Read(n, at, least, pass(n, at))
						at += n
						pace.Read(2*least, 0, least, pass(2*least, 0)) // a short prompt takes turns with it
					}
					require.LessOrEqual(t, parts, needed*5/4+3)
				}
			}
		})
	}
	var pace host.ReadingPace
	require.Equal(t, 64, pace.Fits(time.Hour, 0, 64), "nothing is known")
	pace.Read(63, 0, 64, time.Second)
	require.Equal(t, 64, pace.Fits(time.Hour, 0, 64), "a few tokens say nothing")
	pace.Read(64, 0, 64, time.Millisecond)
	require.Equal(t, 512, pace.Fits(10*time.Millisecond, 0, 64))
	require.Equal(t, 256, pace.Fits(10*time.Millisecond, 1024, 64))
	pace.Read(128, 6000, 64, 4*time.Millisecond)
	require.Equal(t, 256, pace.Fits(10*time.Millisecond, 6000, 64))
	require.Equal(t, 512, pace.Fits(10*time.Millisecond, 0, 64), "which is known as before")
	require.Equal(t, 256, pace.Fits(10*time.Millisecond, 1024, 64))
	pace = host.ReadingPace{}
	pace.Read(128, 6000, 64, 4*time.Millisecond)
	require.Equal(t, 320, pace.Fits(10*time.Millisecond, 0, 64), "no longer than at a later position")
	require.Zero(t, pace.Fits(-time.Second, 0, 64))
	require.Positive(t, pace.Fits(1<<62, 0, 1))
}

// openReaders opens a build of several sequences with 1,024 positions and a kernel for prompts, whose tokens take some
// time each.
func openReaders(t *testing.T, us, tokens int) *host.Session {
	t.Helper()
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, fmt.Sprintf("max_seq=1024 end0=1024 slow_us=%d", us), func(f *host.Facts) {
		f.Model.MaxSeq, f.Variants[0].Hi, f.Prompt = 1024, 1023, tokens
		hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: 4})
	})
	s, err := host.Open(t.Context(), dir, host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// reads is how many tokens of a prompt each step reads, until it has been read, and how many tokens another sequence
// gives meanwhile.
func reads(t *testing.T, b *host.Batch, id, other int) (all []int, given int) {
	t.Helper()
	for before := b.Unread(id); before > 1; {
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		left := max(1, b.Unread(id)) // the last one is decoded
		all = append(all, before-left)
		before = left
		for _, got := range tokens {
			if got.Sequence == other {
				given++
			}
		}
	}
	return all, given
}

// While another sequence waits for its next token, a step reads as many tokens of a prompt as fit into the pause, by
// the time that earlier ones took; the least part where nothing is known, or where that alone takes too long. Where
// nobody waits it reads a pass. The other one gives tokens in each step, and both what they give alone.
func TestPromptsAreReadAlongsideOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	prompt := make([]int, 901)
	for i := range prompt {
		prompt[i] = rng.IntN(4096)
	}
	for name, c := range map[string]struct {
		us, kernel int
		pause      time.Duration
		steps      [2]int // at least and at most
		part       int    // at most
	}{
		"as fits":          {200, 512, 30 * time.Millisecond, [2]int{8, 15}, 128},
		"all at once":      {0, 512, time.Hour, [2]int{2, 2}, 900 - 64},
		"the least":        {0, 512, time.Nanosecond, [2]int{15, 15}, 64},
		"steps as fit":     {200, 0, 30 * time.Millisecond, [2]int{8, 113}, 128},
		"the least steps":  {0, 0, time.Nanosecond, [2]int{113, 113}, 8},
		"steps at no loss": {0, 0, time.Hour, [2]int{2, 2}, 900 - 8},
	} {
		t.Run(name, func(t *testing.T) {
			s := openReaders(t, c.us, c.kernel)
			b := s.NewBatch(host.BatchOptions{Pause: c.pause})
			other, _, err := b.Admit([]int{5}, host.SequenceOptions{})
			require.NoError(t, err)
			_, err = b.Step(t.Context())
			require.NoError(t, err)
			id, _, err := b.Admit(prompt, host.SequenceOptions{Most: 1})
			require.NoError(t, err)
			require.Equal(t, 901, b.Unread(id))
			all, given := reads(t, b, id, other)
			require.GreaterOrEqual(t, len(all), c.steps[0], all)
			require.LessOrEqual(t, len(all), c.steps[1], all)
			require.LessOrEqual(t, slices.Max(all), c.part)
			require.Equal(t, len(all), given)
			require.Zero(t, b.Unread(id))
			b.Retire(id)
			b.Retire(other)
			alone, _, err := b.Admit(append([]int{9}, prompt...), host.SequenceOptions{})
			require.NoError(t, err)
			all, _ = reads(t, b, alone, -1)
			require.Equal(t, max(32, c.kernel), all[0], "nobody waits")
		})
	}
	s := openReaders(t, 0, 512)
	b := s.NewBatch(host.BatchOptions{Pause: time.Millisecond})
	texts := map[int][]int{}
	for _, ids := range [][]int{{5}, prompt} {
		id, _, err := b.Admit(ids, host.SequenceOptions{})
		require.NoError(t, err)
		texts[id] = slices.Clone(ids)
	}
	for len(texts[1]) < 905 {
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, got := range tokens {
			_, want := hosttest.Mirror(texts[got.Sequence])
			require.Equal(t, want, got.ID)
			texts[got.Sequence] = append(texts[got.Sequence], got.ID)
		}
	}
}

// A short prompt does not wait for a long one that came before it, nor the long one for all that are shorter. One that
// begins as another that is being read waits for that, and is not read twice.
func TestPromptsTakeTurns(t *testing.T) {
	s := openReaders(t, 0, 512)
	b := s.NewBatch(host.BatchOptions{Prompt: 20})
	admit := func(first, n int) int {
		t.Helper()
		ids := make([]int, n)
		for i := range ids {
			ids[i] = first + i
		}
		id, _, err := b.Admit(ids, host.SequenceOptions{})
		require.NoError(t, err)
		return id
	}
	step := func(want ...int) {
		t.Helper()
		_, err := b.Step(t.Context())
		require.NoError(t, err)
		var left []int
		for id := range want {
			left = append(left, b.Unread(id))
		}
		require.Equal(t, want, left)
	}
	admit(100, 500)
	admit(1000, 31)
	step(480, 31)
	step(480, 11)
	admit(2000, 6)
	step(460, 11, 6)
	step(455, 0, 0)
	step(435, 0, 0)
	b.Retire(1)
	b.Retire(2)
	require.Equal(t, 3, admit(100, 490)) // of which the first one has read a part
	require.Equal(t, 1, admit(100, 490))
	step(415, 425, 0, 425)
	step(395, 425, 0, 425)
	step(375, 425, 0, 425)
}

// A sequence that is retired while its prompt is read leaves what has been read, also by a step that was cancelled
// before; the next one goes on from there.
func TestPromptsThatAreNotReadToTheEnd(t *testing.T) {
	s := openReaders(t, 0, 512)
	b, prompt := s.NewBatch(host.BatchOptions{Prompt: 200}), make([]int, 600)
	for i := range prompt {
		prompt[i] = 7 * i % 4096
	}
	id, _, err := b.Admit(prompt, host.SequenceOptions{})
	require.NoError(t, err)
	_, err = b.Step(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Step(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 400, b.Unread(id))
	b.Retire(id)
	id, cached, err := b.Admit(prompt, host.SequenceOptions{})
	require.NoError(t, err)
	require.Equal(t, []int{200, 400}, []int{cached, b.Unread(id)})
	var tokens []host.Token
	for len(tokens) == 0 {
		tokens, err = b.Step(t.Context())
		require.NoError(t, err)
	}
	_, want := hosttest.Mirror(prompt)
	require.Equal(t, want, tokens[0].ID)
}

// A conversation goes on in its region, and new ones that begin with the same system message take other regions, as
// long as there are any; then that of the conversation that has rested longest.
func TestConversationsKeepTheirRows(t *testing.T) {
	s := openReaders(t, 0, 512)
	b, rng := s.NewBatch(host.BatchOptions{Prompt: 1000}), rand.New(rand.NewPCG(8, 8))
	more := func(text []int, n int) []int {
		text = slices.Clone(text)
		for range n {
			text = append(text, rng.IntN(4096))
		}
		return text
	}
	turn := func(prompt []int, cached int) []int {
		t.Helper()
		id, known, err := b.Admit(prompt, host.SequenceOptions{Most: 4})
		require.NoError(t, err)
		require.Equal(t, cached, known)
		text := slices.Clone(prompt)
		for range 4 {
			tokens, err := b.Step(t.Context())
			require.NoError(t, err)
			require.Len(t, tokens, 1)
			_, want := hosttest.Mirror(text)
			require.Equal(t, want, tokens[0].ID)
			text = append(text, tokens[0].ID)
		}
		b.Retire(id)
		return text
	}
	system := more(nil, 40)
	var all [][]int
	for i, n := range []int{300, 200, 250, 150} {
		all = append(all, turn(more(system, n), min(40, 40*i)))
	}
	for i, text := range all {
		all[i] = turn(more(text, 10), len(text)-1)
	}
	turn(more(system, 100), 40)
	turn(more(all[1], 10), len(all[1])-1)
	turn(more(all[2], 10), len(all[2])-1)
	turn(more(all[0], 10), 40) // which had rested longest
	turn(more(nil, 9), 0)
	turn(append(slices.Clone(all[2][:200]), 1, 2), 200) // most of a text is a conversation that goes on
}
