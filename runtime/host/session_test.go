package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

const variants = "variants=3 end0=16 end1=50 end2=128"

// greedy continues a prompt by n tokens.
func greedy(prompt []int, n int) []int {
	all := append([]int{}, prompt...)
	for range n {
		_, next := hosttest.Mirror(all)
		all = append(all, next)
	}
	return all[len(prompt):]
}

func open(t *testing.T, settings string) *host.Session {
	t.Helper()
	return openWith(t, settings, host.Options{})
}

func openWith(t *testing.T, settings string, o host.Options) *host.Session {
	t.Helper()
	hosttest.NeedDriver(t)
	s, err := host.Open(t.Context(), hosttest.Build(t, settings, nil), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestCompleteStreamsGreedyTokens(t *testing.T) {
	for _, settings := range []string{"", variants} {
		s := open(t, settings)
		prompt := []int{5, 9, 2}
		var streamed []int
		c, err := s.Complete(t.Context(), prompt, 126, nil, func(id int) error {
			streamed = append(streamed, id)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, greedy(prompt, 126), c.IDs)
		require.Equal(t, c.IDs, streamed)
		require.False(t, c.Stopped)
		require.Equal(t, 128, s.Position())

		s.Reset()
		again, err := s.Complete(t.Context(), prompt, 126, nil, nil)
		require.NoError(t, err)
		require.Equal(t, c.IDs, again.IDs)
	}
}

// A second prompt continues where the first ended, across variants.
func TestSequencesContinue(t *testing.T) {
	s := open(t, variants)
	_, err := s.Feed(t.Context(), []int{1, 2, 3}, nil)
	require.NoError(t, err)
	c, err := s.Complete(t.Context(), []int{4, 5}, 40, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{1, 2, 3, 4, 5}, 40), c.IDs)
}

func TestTokensArriveWhileTheKernelRuns(t *testing.T) {
	s := open(t, "hang_at=6") // a kernel that does not end on its own
	ctx, cancel := context.WithCancel(t.Context())
	var got []int
	_, err := s.Generate(ctx, 7, 20, nil, func(id int) error {
		got = append(got, id)
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, got)
}

func TestStopIDsEndGeneration(t *testing.T) {
	// Position 9 chooses token 1: the eighth generated after two prompt tokens.
	s := open(t, "eos_at=9")
	c, err := s.Complete(t.Context(), []int{5, 6}, 100, []int{1}, nil)
	require.NoError(t, err)
	require.True(t, c.Stopped)
	require.Len(t, c.IDs, 9)
	require.Equal(t, 1, c.IDs[8])
	require.Equal(t, 10, s.Position())
	// The session goes on from there: the epochs still agree after a launch that ended early.
	_, err = s.Complete(t.Context(), []int{1, 2}, 5, []int{1}, nil)
	require.NoError(t, err)

	s.Reset()
	c, err = s.Complete(t.Context(), []int{5, 6}, 100, nil, nil) // as with --ignore-eos
	require.NoError(t, err)
	require.False(t, c.Stopped)
	require.Len(t, c.IDs, 100)

	s.Reset()
	c, err = s.Complete(t.Context(), []int{5, 6}, 100, []int{1}, nil)
	require.NoError(t, err)
	require.Len(t, c.IDs, 9, "words of an earlier launch are not tokens")
}

// A stop id that the model would choose inside the prompt ends nothing, and one chosen right after it ends at once.
func TestStopIDsInAndAfterThePrompt(t *testing.T) {
	s := open(t, "eos_at=2")
	c, err := s.Complete(t.Context(), []int{5, 6, 7, 8, 9}, 10, []int{1}, nil)
	require.NoError(t, err)
	require.Len(t, c.IDs, 10)
	s.Reset()
	c, err = s.Complete(t.Context(), []int{5, 6, 7}, 10, []int{1}, nil)
	require.NoError(t, err)
	require.Equal(t, host.Completion{IDs: []int{1}, Stopped: true}, c)
}

func TestFeedGivesTeacherForcedLogits(t *testing.T) {
	s := open(t, variants)
	ids := make([]int, 60)
	for i := range ids {
		ids[i] = (i*37 + 11) % 4096
	}
	next := 0
	_, err := s.Feed(t.Context(), ids, func(position int, logits []float32) error {
		require.Equal(t, next, position)
		require.Len(t, logits, 4096)
		_, chosen := hosttest.Mirror(ids[:position+1])
		require.Equal(t, float32(2), logits[chosen])
		next++
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, len(ids), next)
}

func TestRequestsThatDoNotFit(t *testing.T) {
	s := open(t, "")
	_, err := s.Complete(t.Context(), []int{1, 2, 3}, 127, nil, nil)
	var p *host.PositionError
	require.ErrorAs(t, err, &p)
	require.EqualError(t, err, "positions 0 to 128 were asked for, and this build decodes positions 0 to 127; "+
		"shorten the prompt, "+
		"lower --max-tokens, or recompile with --max-seq 129")
	require.Zero(t, s.Position())
	_, err = s.Feed(t.Context(), []int{4096}, nil)
	var id *host.TokenError
	require.ErrorAs(t, err, &id)
	_, err = s.Feed(t.Context(), nil, nil)
	require.Error(t, err)
	_, err = s.Generate(t.Context(), -1, 3, nil, nil)
	require.ErrorAs(t, err, &id)
	require.NoError(t, s.Close())
	_, err = s.Feed(t.Context(), []int{1}, nil)
	require.ErrorIs(t, err, host.ErrClosed)
}

func TestCancelRaisesTheAbortWord(t *testing.T) {
	s := open(t, "hang_at=6")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	var got []int
	all, err := s.Generate(ctx, 3, 30, nil, func(id int) error {
		if got = append(got, id); len(got) == 6 {
			cancel(why)
		}
		return nil
	})
	require.ErrorIs(t, err, why)
	require.Empty(t, all)
	require.Zero(t, s.Position(), "an aborted launch does not count")
	// The GPU is clean: the same session decodes.
	again, err := s.Generate(t.Context(), 3, 30, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 30), again)
	require.Equal(t, got, again[:6])
}

func TestCancelledBefore(t *testing.T) {
	s := open(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Feed(ctx, []int{1}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// A launch that ends on its own after the abort word was raised counts.
func TestCancelOfAHealthyLaunch(t *testing.T) {
	s := open(t, "slow_us=2000")
	ctx, cancel := context.WithCancel(t.Context())
	all, err := s.Generate(ctx, 3, 100, nil, func(int) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, greedy([]int{3}, len(all)), all)
	require.NotEmpty(t, all)
	require.Equal(t, len(all), s.Position())
}

func TestStallIsReportedInIRNames(t *testing.T) {
	s := open(t, "stall_at=4")
	_, err := s.Complete(t.Context(), []int{1, 2}, 20, nil, nil)
	var stall *host.StallError
	require.ErrorAs(t, err, &stall)
	require.Equal(t, []string{
		"L01.qkv (step 2): SM 1 waited in vain for an element of the vector it reads; SM 1: warp 3, index 41, " +
			"epoch or phase 7",
		"L01.qkv (step 2): SM 0, 2-3 followed while waiting for an element of the vector it reads; SM 0: warp 3, " +
			"index 40, epoch or phase 7",
	}, stall.Dump())
	require.ErrorContains(t, err, "stalled in the launch at position 2")
	require.Equal(t, 2, s.Position())
	_, err = s.Generate(t.Context(), 9, 20, nil, nil)
	require.NoError(t, err, "the session must be usable after a stall")
}

func TestEmitErrorEndsGeneration(t *testing.T) {
	s := open(t, "")
	full := errors.New("disk full")
	calls := 0
	_, err := s.Complete(t.Context(), []int{1}, 100, nil, func(int) error {
		if calls++; calls == 3 {
			return full
		}
		return nil
	})
	require.ErrorIs(t, err, full)
	require.Equal(t, 3, calls)
}

// withReference opens a fake build whose reference is the twin.
func withReference(t *testing.T, settings string, broken bool) (*host.Session, *bool) {
	closed := new(bool)
	return openWith(t, settings, host.Options{Reference: func(r host.Resident) (host.Reference, error) {
		return &hosttest.Twin{Resident: r, Broken: broken, Closed: closed}, nil
	}}), closed
}

func TestCheckPasses(t *testing.T) {
	s, closed := withReference(t, variants, false)
	r, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, r.Failures)
	require.True(t, r.Passed)
	require.True(t, *closed)
	require.Zero(t, s.Position())
	var spans [][2]int
	for _, span := range r.Spans {
		require.True(t, span.Deterministic)
		require.Zero(t, span.RMS)
		spans = append(spans, [2]int{span.First, span.Last})
	}
	require.Equal(t, [][2]int{{0, 31}, {12, 19}, {46, 53}, {120, 127}}, spans)
}

func TestCheckFails(t *testing.T) {
	for _, c := range []struct {
		settings string
		broken   bool
		message  string
	}{
		{"", true, "at id 77"},
		{"flaky=1", false, "two runs of the kernel differ"},
		{"off=300", false, "the logits differ"},
	} {
		s, _ := withReference(t, c.settings, c.broken)
		r, err := s.Check(t.Context(), nil)
		require.NoError(t, err)
		require.False(t, r.Passed)
		require.Contains(t, fmt.Sprint(r.Failures), c.message)
		_, err = s.Bench(t.Context(), host.BenchOptions{}, nil)
		require.ErrorIs(t, err, host.ErrNotChecked)
	}
}

func TestBench(t *testing.T) {
	s, _ := withReference(t, variants, false)
	_, err := s.Bench(t.Context(), host.BenchOptions{}, nil)
	require.ErrorIs(t, err, host.ErrNotChecked)
	_, err = s.Check(t.Context(), nil)
	require.NoError(t, err)
	r, err := s.Bench(t.Context(), host.BenchOptions{Position: 20, StepsPerLaunch: 15, Launches: 20, WarmUp: 3}, nil)
	require.NoError(t, err)
	// The fake's events add 1.5 ms to each interval.
	require.InDelta(t, 200, r.Latency.Median, 0.1)
	require.InDelta(t, 180, r.Ceiling.Median, 0.1)
	require.InDelta(t, 130, r.Drain.Median, 0.1)
	require.InDelta(t, 4096/170e-6/1e9, r.ReadGBs, 1e-4)
	require.InDelta(t, 0.9, r.Share, 0.001)
	require.Equal(t, 4096.0+27*64, r.BytesPerToken)
	require.InDelta(t, r.BytesPerToken/200e-6/1e9, r.GBs, 1e-4)
	require.Equal(t, 20, r.Launches)
	require.Equal(t, 3, r.WarmUp)
	require.Len(t, r.Samples.Decode, 20)
	require.Len(t, r.Samples.Ceiling, 20)
	require.InDelta(t, 200, r.Samples.Decode[19], 0.1)
	require.Equal(t, host.Machine{GPU: "Fake A", Arch: "sm_90", SMs: 132, MemoryBytes: 4 << 30, L2Bytes: 50 << 20,
		CUDA: "13.0", Driver: "580.1",
		MaxSMClockMHz: 1980, MaxMemoryClockMHz: 3201, PowerLimitW: 700, ECC: "on",
		Clocks: &host.Clocks{Samples: 3, // batches of 8
			SM: host.Range{Min: 1755, Max: 1755}, Memory: host.Range{Min: 3201, Max: 3201},
			PowerW:      host.Range{Min: 512.5, Max: 512.5},
			Temperature: host.Range{Min: 61, Max: 61}, LimitedBy: []string{"sw_power_cap", "unknown_0x200"}}},
		r.Machine)

	_, err = s.Bench(t.Context(), host.BenchOptions{Position: 20, StepsPerLaunch: 31}, nil)
	require.ErrorContains(t, err, "1 to 30 are possible")
	var p *host.PositionError
	_, err = s.Bench(t.Context(), host.BenchOptions{Position: 128}, nil)
	require.ErrorAs(t, err, &p)
	c, err := s.Complete(t.Context(), []int{3}, 100, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 100), c.IDs, "decoding after a measurement")
}

func TestBenchWithholdsArtefacts(t *testing.T) {
	s, _ := withReference(t, "decode_us=79", false)
	_, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	_, err = s.Bench(t.Context(), host.BenchOptions{Launches: 10}, nil)
	var a *host.ArtefactError
	require.ErrorAs(t, err, &a)
}

// A session that goes back decodes as one that never went further, across variants too.
func TestRewindKeepsWhatIsBefore(t *testing.T) {
	s := open(t, variants)
	prompt := make([]int, 55) // the third variant begins at 50
	for i := range prompt {
		prompt[i] = (i*37 + 11) % 4096
	}
	_, err := s.Complete(t.Context(), prompt, 20, nil, nil)
	require.NoError(t, err)
	for _, at := range []int{54, 30, 16, 3, 0} {
		require.NoError(t, s.Rewind(at))
		require.Equal(t, at, s.Position())
		other := append(slices.Clone(prompt[:at]), 8, 9)
		c, err := s.Complete(t.Context(), other[at:], 30, nil, nil)
		require.NoError(t, err)
		require.Equal(t, greedy(other, 30), c.IDs, "from %d on", at)
	}
	position := s.Position()
	for _, bad := range []int{-1, position + 1} {
		require.ErrorContains(t, s.Rewind(bad), fmt.Sprintf("want 0 to %d", position))
		require.Equal(t, position, s.Position())
	}
}
