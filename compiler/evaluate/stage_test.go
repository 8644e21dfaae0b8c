package evaluate

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/knobs"
	"amkc/runtime/host"
	"amkc/search"
	"amkc/search/turns"
)

func stageRequest(t *testing.T, stage string, candidate knobs.Settings) Request {
	t.Helper()
	r := requestFor(t, candidate, nil)
	r.Stage = stage
	return r
}

// What is predicted of a stage is its part of a step. It has no ceiling, and a prior does not learn from it.
func TestStagePredicted(t *testing.T) {
	v := judgedAs(t, stageRequest(t, "down", knobs.Settings{"tiling.gemv.rows": "64"}))
	require.Equal(t, search.Pass, v.Class)
	require.Equal(t, "down", v.Stage)
	require.True(t, v.Correctness.Passed)
	require.Nil(t, v.Shares)
	step := judgedAs(t, requestFor(t, knobs.Settings{"tiling.gemv.rows": "64"}, nil))
	for i, at := range v.At {
		require.Positive(t, at.Baseline.Median)
		require.Less(t, at.Baseline.Median, step.At[i].Baseline.Median/2)
		require.Zero(t, at.Ceiling)
		require.Empty(t, at.Predicted.Traits)
		require.InDelta(t, at.Candidate.Median, at.Predicted.Candidate, 1e-9)
	}
	require.NotEqual(t, step.Ratio.Mean, v.Ratio.Mean)
	describe := NewDescriber(optionsFor(t, small, "h200"), []int{0, 40}, "down")
	again, err := describe(knobs.Settings{"tiling.gemv.rows": "64"}, nil)
	require.NoError(t, err)
	require.Equal(t, []search.Predicted{*v.At[0].Predicted, *v.At[1].Predicted}, again)
	corpus := search.Corpus{}
	v.Device = search.DeviceCUDA
	corpus.Add(v)
	require.False(t, corpus.Learn().Times.Used)
}

// What gives few SMs all there is to do in a stage makes them slow, and all others wait for them: it is no gain, though
// the mean SM of 132 does less. The step says the same.
func TestStageOfFewSMs(t *testing.T) {
	few := knobs.Settings{"tiling.gemv.rows": "64"}
	step := judgedAs(t, requestFor(t, few, nil))
	require.Greater(t, step.Ratio.Mean, 1.2)
	for _, stage := range []string{"qkv", "o", "gate_up", "down", "lm_head"} {
		v := judgedAs(t, stageRequest(t, stage, few))
		require.Greater(t, v.Ratio.Mean, 1.2, stage)
		require.Equal(t, search.Revert, v.Decision, stage)
	}
}

// On a GPU the time is that of the stage, and of a step only what confirms it.
func TestStageMeasured(t *testing.T) {
	g := newFakeGPU()
	g.stage = &host.BisectReport{Passed: true, Positions: 40, Stages: 80, Seen: host.Tolerance{RMS: 1e-3, Max: 2e-3}}
	g.us = func(e string, pos, _ int) float64 {
		if e == candidate {
			return 90
		}
		return 100
	}
	r := stageRequest(t, "qkv", knobs.Settings{"tiling.ring.pace": "500"})
	v := g.judges(t, r)
	require.Equal(t, search.Keep, v.Decision, v.Why)
	require.InDelta(t, 9, v.At[0].Candidate.Median, 0.1)
	require.InDelta(t, 10, v.At[1].Baseline.Median, 0.1)
	require.Equal(t, &search.Handed{Positions: 40, Vectors: 80, RMS: 1e-3, Max: 2e-3}, v.Correctness.Stage)
	require.Zero(t, v.At[0].Ceiling)
	require.Nil(t, v.At[0].Predicted)

	// The twins of this measurement decide what counts, not those of another one.
	g.us = func(e string, pos, opening int) float64 {
		if e == twin && pos == 40 {
			return 100 + 12*float64(opening%2)
		}
		if e == candidate {
			return 95
		}
		return 100
	}
	v = g.judges(t, r)
	require.Equal(t, search.Revert, v.Decision)
	require.InDelta(t, 0.12, v.Spread, 0.003)
	require.InDelta(t, 0.099, v.Band, 0.003, "of twelve openings")
	require.Equal(t, v.Band, v.Threshold)

	g.fail = func(e string) error {
		if e == candidate {
			return errors.Join(turns.ErrDiffers)
		}
		return nil
	}
	v = g.judges(t, r)
	require.Equal(t, search.Fail, v.Class)
	require.Nil(t, v.Timing)
}

// A time of a stage without its own check is none, and neither is a report of a step alone.
func TestStageWithoutItsCheck(t *testing.T) {
	g := newFakeGPU()
	r := stageRequest(t, "qkv", knobs.Settings{"tiling.ring.pace": "500"})
	r.Device, r.Build, r.Measure = search.DeviceCUDA, g.build, g.take
	_, err := Evaluate(t.Context(), r)
	require.ErrorContains(t, err, "does not say what was asked: qkv")
	g.stage = &host.BisectReport{Passed: true}
	r.Measure = func(ctx context.Context, e []turns.Entrant, o turns.Options, emit func(turns.Turn) error) (bool,
		error) {
		o.Bench.Stage = ""
		return g.take(ctx, e, o, emit)
	}
	_, err = Evaluate(t.Context(), r)
	require.ErrorContains(t, err, "does not say what was asked: qkv")
}

func TestNoSuchStage(t *testing.T) {
	_, err := Evaluate(t.Context(), stageRequest(t, "embed", nil))
	require.ErrorContains(t, err, "the schedule has no embed to be tuned; want qkv, attention, o, gate_up, down, "+
		"lm_head")
	_, err = Evaluate(t.Context(), stageRequest(t, "donw", nil))
	require.ErrorContains(t, err, "did you mean down?")
	_, err = SpaceOf(optionsFor(t, small, "h200"), &search.Space{}, "embed")
	require.ErrorContains(t, err, "AMK6108")
}

// requireStages holds a space to what a stage is: its knobs are those that have a say in it, its own, those of the ring
// and the exchange, and what changes what it computes on which SM.
func requireStages(t *testing.T, o compiler.Options, space *search.Space) {
	t.Helper()
	all := map[string][]string{}
	for _, k := range space.Knobs {
		all[k.Path] = k.Stages
	}
	require.Equal(t, Stages(), all["tiling.ring.chunk_bytes"])
	require.Equal(t, Stages(), all["tiling.exchange.copies"])
	require.Equal(t, []string{"down"}, all["tiling.warps.down"])
	require.Equal(t, []string{attention}, all["tiling.attention.max_splits"])
	require.Equal(t, []string{attention}, all["tiling.attention.split_from"])
	require.Equal(t, Stages(), all["tiling.gemv.rows"], "the SMs that attend are those that have less else")
	require.Contains(t, all["sm_assignment"], "qkv")
	require.Empty(t, all["tiling.loop.roll"])
	require.Empty(t, all["tiling.loop.barrier"])

	of, err := SpaceOf(o, space, "qkv")
	require.NoError(t, err)
	require.NotNil(t, of.Knob("tiling.warps.qkv"))
	require.Nil(t, of.Knob("tiling.warps.down"))
	require.NotEqual(t, space.Digest, of.Digest)
	require.Len(t, of.Digest, 64)
}
