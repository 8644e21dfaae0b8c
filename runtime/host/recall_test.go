package host_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// openStates opens a build whose second layer has a recurrent state.
func openStates(t *testing.T, settings string) *host.Session {
	t.Helper()
	hosttest.NeedDriver(t)
	s, err := host.Open(t.Context(), hosttest.Build(t, settings+" cache=16384", func(f *host.Facts) {
		rows := host.Layer{Heads: 4, KVHeads: 2, HeadDim: 16, CacheBlock: 512}
		f.Layers = []host.Layer{rows, {Heads: 4, State: 8192, CacheAt: 8192}}
	}), host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// A session with recurrent states goes on after its last token, and decodes that again. From elsewhere it decodes what
// is before once more, as often as that is interrupted until it is done.
func TestStatesAreRecalled(t *testing.T) {
	s := openStates(t, "")
	text := make([]int, 100)
	for i := range text {
		text[i] = i + 5
	}
	feed := func(ctx context.Context, ids ...int) (int, error) { return s.Feed(ctx, ids, nil) }
	_, err := feed(t.Context(), text...)
	require.NoError(t, err)

	var read []int64
	s.SetProgress(func(_ string, done, _ int64) { read = append(read, done) })
	require.NoError(t, s.Rewind(99))
	_, err = feed(t.Context(), 7)
	require.NoError(t, err)
	_, err = feed(t.Context(), 8)
	require.NoError(t, err)
	require.Empty(t, read, "the last token is decoded again, and what follows it")

	require.NoError(t, s.Rewind(90))
	why := errors.New("interrupted")
	for range 2 {
		ctx, cancel := context.WithCancelCause(t.Context())
		s.SetProgress(func(_ string, done, _ int64) {
			if done == 32 {
				cancel(why)
			}
		})
		_, err = feed(ctx, 9)
		require.ErrorIs(t, err, why)
		require.Equal(t, 90, s.Position())
		require.ErrorContains(t, s.SavePrefix(io.Discard, text[:90]), "states of the model are not those after them")
	}
	s.SetProgress(func(_ string, done, _ int64) { read = append(read, done) })
	next, err := feed(t.Context(), 9)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 32, 64, 90}, read)
	text = append(text[:90], 9)
	_, chosen := hosttest.Mirror(text)
	require.Equal(t, chosen, next)
	require.Equal(t, 91, s.Position())
	require.NoError(t, s.SavePrefix(io.Discard, text))
}

// After a launch that was aborted, states are decoded once more.
func TestStatesAfterAnAbort(t *testing.T) {
	s := openStates(t, "stall_at=50")
	_, err := s.Feed(t.Context(), make([]int, 40), nil)
	require.NoError(t, err)
	_, err = s.Feed(t.Context(), make([]int, 20), nil)
	var stall *host.StallError
	require.ErrorAs(t, err, &stall)
	require.Equal(t, 40, s.Position())
	var read []int64
	s.SetProgress(func(_ string, done, _ int64) { read = append(read, done) })
	_, err = s.Feed(t.Context(), []int{3}, nil)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 32, 40}, read)
	require.Equal(t, 41, s.Position())
}
