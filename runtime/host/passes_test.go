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
)

// openPasses opens a build that has kernels for passes of n rows.
func openPasses(t *testing.T, settings string, rows ...int) *host.Session {
	t.Helper()
	hosttest.NeedDriver(t)
	s, err := host.Open(t.Context(), hosttest.Build(t, settings, passes(rows...)), host.Options{
		Reference: func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// A prompt is decoded by passes, across variants, up to the last position, and in whatever parts it comes; what follows
// it is what follows the same tokens one by one.
func TestPromptsAreDecodedByPasses(t *testing.T) {
	for _, settings := range []string{"", variants} {
		for _, rows := range [][]int{{8}, {3}, {2, 5}} {
			t.Run(fmt.Sprint(settings, rows), func(t *testing.T) {
				s := openPasses(t, settings, rows...)
				rng := rand.New(rand.NewPCG(1, uint64(rows[0])))
				for round := range 20 {
					s.Reset()
					text := make([]int, 1+rng.IntN(128))
					if round == 0 {
						text = make([]int, 128)
					}
					for i := range text {
						text[i] = rng.IntN(4096)
					}
					for at := 0; at < len(text); {
						n := 1 + rng.IntN(len(text)-at)
						seen := at
						var each func(int, []float32) error
						if rng.IntN(2) == 0 {
							each = func(position int, logits []float32) error {
								require.Equal(t, seen, position)
								_, chosen := hosttest.Mirror(text[:position+1])
								require.Equal(t, chosen, slices.Index(logits, slices.Max(logits)))
								seen++
								return nil
							}
						}
						next, err := s.Feed(t.Context(), text[at:at+n], each)
						require.NoError(t, err)
						_, chosen := hosttest.Mirror(text[:at+n])
						require.Equal(t, chosen, next)
						at += n
						require.Equal(t, at, s.Position())
						if each != nil {
							require.Equal(t, at, seen)
						}
					}
				}
			})
		}
	}
}

// The check compares passes with single steps, whole ones and passes with rows to spare.
func TestCheckComparesPasses(t *testing.T) {
	s := openPasses(t, variants, 8)
	r, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, r.Passed, "%v", r.Failures)

	s = openPasses(t, variants+" pass_off=1", 8)
	r, err = s.Check(t.Context(), nil)
	require.NoError(t, err)
	require.False(t, r.Passed)
	require.Contains(t, r.Failures[0], "two runs of the kernel differ")
}

// A launch of passes that was aborted leaves the session where it was.
func TestAbortInAPass(t *testing.T) {
	s := openPasses(t, "hang_at=11", 8)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Feed(ctx, make([]int, 20), nil)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Zero(t, s.Position())
	next, err := s.Feed(t.Context(), []int{4, 5, 6, 7}, nil)
	require.NoError(t, err)
	_, chosen := hosttest.Mirror([]int{4, 5, 6, 7})
	require.Equal(t, chosen, next)
}
