package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/text/sampling"
)

// openOn opens the fake build as one of several GPUs, each of which has weights of its own and computes what one would
// alone. A GPU has the logits of its part of the vocabulary.
func openOn(t *testing.T, gpus int, settings string) (*host.Session, error) {
	t.Helper()
	return openFrom(t, 0, gpus, settings)
}

// openFrom does so from a GPU on.
func openFrom(t *testing.T, first, gpus int, settings string) (*host.Session, error) {
	t.Helper()
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, fmt.Sprintf("gpus=%d %s", gpus, settings), func(f *host.Facts) {
		f.Ranks = gpus
		if settings == "layers=1" {
			oneLayer(f)
		}
	})
	s, err := host.Open(t.Context(), dir, host.Options{GPU: first})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s, err
}

func TestSeveralGPUs(t *testing.T) {
	hosttest.NeedDriver(t)
	prompt := []int{5, 9, 2}
	for _, settings := range []string{"", variants} {
		one, err := host.Open(t.Context(), hosttest.Build(t, settings, nil), host.Options{})
		require.NoError(t, err)
		want := fed(t, one, prompt)
		require.NoError(t, one.Close())

		s, err := openOn(t, 2, settings)
		require.NoError(t, err)
		var streamed []int
		c, err := s.Complete(t.Context(), prompt, 60, nil, func(id int) error {
			streamed = append(streamed, id)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, greedy(prompt, 60), c.IDs)
		require.Equal(t, c.IDs, streamed)

		s.Reset()
		require.True(t, slices.Equal(want, fed(t, s, prompt)), "the logits of one")
		require.NoError(t, s.Close())
	}
}

// fed are the logits of all positions of a prompt.
func fed(t *testing.T, s *host.Session, prompt []int) (all []float32) {
	t.Helper()
	_, err := s.Feed(t.Context(), prompt, func(_ int, logits []float32) error {
		all = append(all, logits...)
		return nil
	})
	require.NoError(t, err)
	return all
}

// Whatever a GPU does, the others are told, and the session goes on where it was.
func TestOneOfSeveralGPUsStalls(t *testing.T) {
	s, err := openOn(t, 2, "stall_at=4")
	require.NoError(t, err)
	_, err = s.Complete(t.Context(), []int{1, 2}, 20, nil, nil)
	var stall *host.StallError
	require.ErrorAs(t, err, &stall)
	require.Len(t, stall.Stalls, 4, "the SMs of one of them")
	on := stall.Stalls[0].On
	require.Contains(t, []string{"GPU 0", "GPU 1"}, on)
	require.Equal(t, []string{
		"L01.qkv (step 2): " + on + ", SM 1 waited in vain for an element of the vector it reads; SM 1: warp 3, " +
			"index 41, epoch or phase 7",
		"L01.qkv (step 2): " + on + ", SM 0, 2-3 followed while waiting for an element of the vector it reads; SM 0: " +
			"warp 3, index 40, epoch or phase 7",
	}, stall.Dump())
	require.Equal(t, 2, s.Position())
	_, err = s.Generate(t.Context(), 9, 20, nil, nil)
	require.NoError(t, err, "the session must be usable after a stall")
}

func TestCancelOfSeveralGPUs(t *testing.T) {
	s, err := openOn(t, 2, "hang_at=6")
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	got := 0
	_, err = s.Generate(ctx, 3, 30, nil, func(int) error {
		if got++; got == 6 {
			cancel(why)
		}
		return nil
	})
	require.ErrorIs(t, err, why)
	require.Zero(t, s.Position())
	again, err := s.Generate(t.Context(), 3, 30, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 30), again)
}

func TestFewerGPUsThanRanks(t *testing.T) {
	_, err := openOn(t, 4, "")
	require.EqualError(t, err, "GPU 0: compiled for 4 GPUs, and there are 2 from it on; recompile with --gpus 2 or "+
		"fewer, or use a machine that has them")
	_, err = openFrom(t, 1, 2, "")
	require.EqualError(t, err, "GPU 1: compiled for 2 GPUs, and there are 1 from it on; begin with GPU 0 at most")
}

// A GPU that fails ends the launch of the others.
func TestOneOfSeveralGPUsFails(t *testing.T) {
	s, err := openOn(t, 2, "fault_at=5")
	require.NoError(t, err)
	_, err = s.Generate(t.Context(), 3, 30, nil, nil)
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
}

// What is not done on several GPUs is refused, and what is alike on all of them goes on.
func TestSeveralGPUsRefuse(t *testing.T) {
	s, err := openOn(t, 2, "")
	require.NoError(t, err)
	var several *host.SeveralError
	_, err = s.Bisect(t.Context(), nil)
	require.ErrorAs(t, err, &several)
	_, err = s.Trace(t.Context(), []int{1})
	require.EqualError(t, err, "tracing a step is not done on 2 GPUs yet; compile the model for one, or leave that out")
	o := sampling.Greedy()
	o.Temperature, o.TopK = 1, 5
	s.Choose(&o, sampling.Text{Prompt: []int{1}})
	_, err = s.Complete(t.Context(), []int{1}, 2, nil, nil)
	require.EqualError(t, err, "leaving tokens out by their probability (top-k, top-p, min-p) is not done on 2 GPUs "+
		"yet; compile the model for one, or leave that out")
	o.TopK = 0
	s.Choose(&o, sampling.Text{Prompt: []int{1}})
	_, err = s.Complete(t.Context(), []int{1}, 2, nil, nil)
	require.NoError(t, err)
}

// A prefix has the rows of all GPUs.
func TestPrefixOfSeveralGPUs(t *testing.T) {
	s, err := openOn(t, 2, "layers=1")
	require.NoError(t, err)
	ids := []int{5, 9, 2}
	next, err := s.Feed(t.Context(), ids, nil)
	require.NoError(t, err)
	cache, err := s.ReadCache()
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, s.SavePrefix(&file, ids))
	path := filepath.Join(t.TempDir(), "prefix")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	require.NoError(t, s.WriteCache(make([]byte, len(cache))))
	loaded, err := s.LoadPrefix(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, ids, loaded)
	again, err := s.ReadCache()
	require.NoError(t, err)
	require.True(t, bytes.Equal(cache, again))
	all, err := s.Generate(t.Context(), next, 5, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy(ids, 6)[1:], all)
}
