package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

func TestProfile(t *testing.T) {
	s, _ := withReference(t, variants, false)
	_, err := s.Profile(t.Context(), host.ProfileOptions{})
	require.ErrorIs(t, err, host.ErrNotChecked)
	_, err = s.Check(t.Context(), nil)
	require.NoError(t, err)
	p, err := s.Profile(t.Context(), host.ProfileOptions{Position: 20, Steps: 2})
	require.NoError(t, err)
	require.Equal(t, 21, p.Position, "the first step of a launch comes before")
	require.Equal(t, 2, p.Steps)
	require.Equal(t, 4, p.SMs)
	require.Zero(t, p.Dropped)
	// The fake's events add 1.5 ms to each launch of four steps.
	require.InDelta(t, 106+375, p.Latency, 0.1)
	require.InDelta(t, 100+375, p.Plain, 0.1)

	// Two steps of five stages, in each a wait, computing and one signal; two waits of the producer a step.
	const consumer, producer = 2 * 5 * 3, 2 * 2
	require.Len(t, p.Spans, 4*(consumer+producer))
	near := func(want, got host.Span) {
		t.Helper()
		require.InDelta(t, want.Start, got.Start, 1e-9)
		require.InDelta(t, want.End, got.End, 1e-9)
		got.Start, got.End = want.Start, want.End
		require.Equal(t, want, got)
	}
	near(host.Span{SM: 0, Role: "consumer", Kind: "exchange wait", Stage: "embed", Step: 0, Start: 0, End: 0.05},
		p.Spans[0])
	near(host.Span{SM: 0, Role: "consumer", Kind: "compute", Stage: "embed", Step: 0, Start: 0.05, End: 0.15},
		p.Spans[1])
	near(host.Span{SM: 0, Role: "consumer", Kind: "signal", Stage: "embed", Step: 0, Start: 0.15, End: 0.175},
		p.Spans[2])
	near(host.Span{SM: 0, Role: "producer", Kind: "slot wait", Stage: "L00.qkv", Step: 0, Start: 0.185, End: 0.235},
		p.Spans[consumer])
	near(host.Span{SM: 0, Role: "producer", Kind: "step wait", Stage: "L00.attn", Step: 0, Start: 0.325, End: 0.38},
		p.Spans[consumer+1])
	// SM 3's timer is 96 ns ahead, which its exchanges show, and its clock's low half has wrapped.
	last := p.Spans[3*(consumer+producer)+consumer-1]
	near(host.Span{SM: 3, Role: "consumer", Kind: "signal", Stage: "L01.attn", Step: 1, Start: 1.725, End: 1.75}, last)

	c, err := s.Complete(t.Context(), []int{3}, 100, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 100), c.IDs, "decoding after a profile")
}

// A build that a search has compiled has no kernel to record with, and says so. What comes after is as ever.
func TestProfileOfALeanBuild(t *testing.T) {
	s, _ := withReference(t, "lean=1", false)
	_, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	_, err = s.Profile(t.Context(), host.ProfileOptions{})
	var build *host.BuildError
	require.ErrorAs(t, err, &build)
	require.ErrorContains(t, err, "no kernel that records who did what")
	r, err := s.Bench(t.Context(), host.BenchOptions{Launches: 3}, nil)
	require.NoError(t, err)
	require.Zero(t, r.Drain)
	require.Positive(t, r.Latency.Median)
	c, err := s.Complete(t.Context(), []int{3}, 50, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 50), c.IDs)
}

// At the end of a variant there is no room for steps that are not recorded.
func TestProfileAtAnEdge(t *testing.T) {
	s, _ := withReference(t, variants, false)
	_, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	for _, c := range []struct{ position, first int }{{0, 1}, {47, 48}, {48, 49}, {49, 49}, {127, 127}} {
		p, err := s.Profile(t.Context(), host.ProfileOptions{Position: c.position, Launches: 1})
		require.NoError(t, err)
		require.Equal(t, c.first, p.Position)
		require.Equal(t, 1, p.Steps)
		require.InDelta(t, 0, p.Spans[0].Start, 1e-9)
		require.Equal(t, "embed", p.Spans[0].Stage)
	}
	var position *host.PositionError
	_, err = s.Profile(t.Context(), host.ProfileOptions{Position: 128})
	require.ErrorAs(t, err, &position)
	_, err = s.Profile(t.Context(), host.ProfileOptions{Position: 45, Steps: 6})
	require.ErrorContains(t, err, "1 to 5 are possible")
	_, err = s.Profile(t.Context(), host.ProfileOptions{Position: 50, Steps: 17})
	require.ErrorContains(t, err, "1 to 16 are possible")
	_, err = s.Profile(t.Context(), host.ProfileOptions{Launches: -1})
	require.ErrorContains(t, err, "must be positive")
}

// A check does not decode position 60.
func TestMeasurementsThatStall(t *testing.T) {
	s, _ := withReference(t, "stall_at=60", false)
	_, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	var stall *host.StallError
	_, err = s.Bench(t.Context(), host.BenchOptions{Position: 50}, nil)
	require.ErrorAs(t, err, &stall)
	require.Equal(t, 50, stall.Position)
	stall = nil
	_, err = s.Profile(t.Context(), host.ProfileOptions{Position: 59})
	require.ErrorAs(t, err, &stall)
	c, err := s.Complete(t.Context(), []int{3}, 50, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 50), c.IDs, "decoding after launches that were aborted")
}

// A rehearsal needs no check and no reference, and launches the kernel without weights before it says so.
func TestRehearse(t *testing.T) {
	s, _ := withReference(t, "", false)
	drained := 0
	require.NoError(t, s.Rehearse(t.Context(), 2, func() error { drained++; return nil }))
	require.Equal(t, 1, drained)
	require.Zero(t, s.Position())
	c, err := s.Complete(t.Context(), []int{3}, 5, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 5), c.IDs)

	wrong := errors.New("wrong")
	require.ErrorIs(t, s.Rehearse(t.Context(), 2, func() error { return wrong }), wrong)
	s, _ = withReference(t, "stall_at=1", false)
	var stall *host.StallError
	require.ErrorAs(t, s.Rehearse(t.Context(), 2, func() error { return nil }), &stall)
	require.Error(t, s.Rehearse(t.Context(), -1, func() error { return nil }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Rehearse(ctx, 2, func() error { return nil }), context.Canceled)
}

func TestMeasurementsThatAreCancelled(t *testing.T) {
	s, _ := withReference(t, "", false)
	_, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = s.Bench(ctx, host.BenchOptions{}, func(string, int64, int64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Profile(ctx, host.ProfileOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestMeasuresBelongToTheBuild(t *testing.T) {
	hosttest.NeedDriver(t)
	for name, c := range map[string]struct {
		spoil func(path string) error
		says  string
	}{
		"missing": {os.Remove, "the kernels that a measurement need"},
		"another's": {func(path string) error { return os.WriteFile(path, []byte("FAKE hidden=72 \x00"), 0o600) },
			"made from other sources than megakernel.fatbin"},
		"another ABI's": {func(path string) error { return os.WriteFile(path, []byte("FAKE abi=12 \x00"), 0o600) },
			"not the measuring kernels of amkc"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := hosttest.Build(t, "", nil)
			s, err := host.Open(t.Context(), dir,
				host.Options{Reference: func(r host.Resident) (host.Reference, error) {
					return &hosttest.Twin{Resident: r}, nil
				}})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			_, err = s.Check(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, c.spoil(filepath.Join(dir, host.MeasureFile)))
			var build *host.BuildError
			_, err = s.Bench(t.Context(), host.BenchOptions{}, nil)
			require.ErrorAs(t, err, &build)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "run make")
			_, err = s.Profile(t.Context(), host.ProfileOptions{})
			require.ErrorAs(t, err, &build)
		})
	}
}
