package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// inParts has a step in parts, at positions of two variants.
const inParts = "parts=1 variants=2 end0=64 end1=128 launch_us=3 part_us=10"

func checkedSession(t *testing.T, settings string) *host.Session {
	t.Helper()
	s, _ := withReference(t, settings, false)
	_, err := s.Check(t.Context(), nil)
	require.NoError(t, err)
	return s
}

// A stage on its own takes what its own launches take, without what launching takes; the rest of the step is not in it.
func TestStageAlone(t *testing.T) {
	s := checkedSession(t, inParts)
	for stage, us := range map[string]float64{"qkv": 2 * 20, "attention": 2 * 30, "embed": 10, "lm_head": 10 * 4} {
		r, err := s.Bench(t.Context(), host.BenchOptions{Position: 20, Stage: stage, Launches: 9, WarmUp: 2}, nil)
		require.NoError(t, err, stage)
		require.Equal(t, stage, r.Stage.Stage)
		require.InDelta(t, us, r.Stage.Latency.Median, 0.01, stage)
		require.InDelta(t, r.Stage.Latency.P10, r.Stage.Latency.P90, 0.01)
		launches := map[string]int{"qkv": 2, "attention": 2, "embed": 1, "lm_head": 1}[stage]
		require.Equal(t, launches, r.Stage.Launches)
		require.Positive(t, r.Stage.Launching.Median)
		require.Empty(t, r.Parts, "where one stage is asked for, steps in parts are not timed with it")
	}
	r, err := s.Bench(t.Context(), host.BenchOptions{Position: 20, Launches: 2}, nil)
	require.NoError(t, err)
	require.Nil(t, r.Stage)
	require.Len(t, r.Parts, 2)
	c, err := s.Complete(t.Context(), []int{3}, 100, nil, nil)
	require.NoError(t, err)
	require.Equal(t, greedy([]int{3}, 100), c.IDs, "decoding after a stage on its own")
}

func TestNoStageAlone(t *testing.T) {
	_, err := checkedSession(t, "").Bench(t.Context(), host.BenchOptions{Stage: "qkv"}, nil)
	var build *host.BuildError
	require.ErrorAs(t, err, &build)
	require.ErrorContains(t, err, "AMK_PARTS=1")
	_, err = checkedSession(t, inParts).Bench(t.Context(), host.BenchOptions{Stage: "down"}, nil)
	require.ErrorContains(t, err, "no stage down")
	_, err = checkedSession(t, inParts+" part_picks=1").Bench(t.Context(), host.BenchOptions{Stage: "qkv"}, nil)
	require.ErrorContains(t, err, "decodes token")
	_, err = checkedSession(t, "parts=1 part_us=0").Bench(t.Context(), host.BenchOptions{Stage: "qkv"}, nil)
	require.ErrorContains(t, err, "no longer than launches that do nothing")
}

// A stage is held to the reference by what it publishes; what another one does wrong is not its fault.
func TestCheckStage(t *testing.T) {
	s, _ := withReference(t, "bad_at=5 bad_ordinal=2 bad_element=3", false) // L00.attn
	r, err := s.CheckStage(t.Context(), "qkv", nil)
	require.NoError(t, err)
	require.True(t, r.Passed)
	require.Equal(t, 2*r.Positions, r.Stages)
	r, err = s.CheckStage(t.Context(), "attention", nil)
	require.NoError(t, err)
	require.False(t, r.Passed)
	require.Equal(t, "L00.attn", r.First.Stage)
	require.Equal(t, 5, r.First.Position)
	_, err = s.CheckStage(t.Context(), "down", nil)
	require.ErrorContains(t, err, "no step publishes anything of a stage down")
}
