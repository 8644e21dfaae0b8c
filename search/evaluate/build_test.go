package evaluate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/progress"
	"amkc/search"
)

// A build alone makes both builds and no verdict, and launches nothing; what cannot be built is one.
func TestBuild(t *testing.T) {
	build := func(g *fakeGPU, candidate, baseline knobs.Settings) (*search.Verdict, error) {
		r := requestFor(t, candidate, baseline)
		r.Device, r.Build, r.Measure = search.DeviceCUDA, g.build, g.take
		return Build(t.Context(), r)
	}
	g := newFakeGPU()
	v, err := build(g, knobs.Settings{"tiling.ring.pace": "500"}, nil)
	require.NoError(t, err)
	require.Nil(t, v)
	require.Len(t, g.built, 2)
	require.Empty(t, g.launched)

	g = newFakeGPU()
	v, err = build(g, knobs.Settings{"pipelining_depth": "16"}, nil)
	require.NoError(t, err)
	require.Equal(t, search.Rejected, v.Class)
	require.Equal(t, search.Revert, v.Decision)
	require.Empty(t, g.built, "what is refused is not built")
	_, err = build(g, nil, knobs.Settings{"pipelining_depth": "16"})
	require.ErrorContains(t, err, "cannot hold a ring")

	r := requestFor(t, knobs.Settings{"tiling.ring.pace": "500"}, nil)
	r.Device = search.DeviceCUDA
	r.Build = func(_ context.Context, l *compiler.Scheduled, _ compiler.Kernels, _ time.Duration, _ progress.Func) (
		string, error) {
		config, err := l.Program.Config.MarshalJSON()
		if strings.Contains(string(config), `"pace":500`) {
			return "", errors.New("nvcc crashed")
		}
		return "there", err
	}
	v, err = Build(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, search.Crash, v.Class)
	require.Contains(t, v.Reason.Msg, "nvcc crashed")
}

// The limit of a build is that of the candidate; the baseline takes as long as it does. A candidate that is refused for
// it is not a crash.
func TestSlowBuildsAreRejected(t *testing.T) {
	refuse := &diag.Diagnostic{Code: compiler.CodeTooSlow, Severity: diag.Error, Msg: "nvcc would take minutes"}
	var limits []time.Duration
	r := requestFor(t, knobs.Settings{"tiling.loop.roll": "0"}, nil)
	r.Device, r.BuildLimit = search.DeviceCUDA, time.Second
	r.Build = func(_ context.Context, _ *compiler.Scheduled, _ compiler.Kernels, limit time.Duration, _ progress.Func) (
		string, error) {
		if limits = append(limits, limit); limit > 0 {
			return "", refuse
		}
		return "there", nil
	}
	v, err := Build(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0, time.Second}, limits)
	require.Equal(t, search.Rejected, v.Class)
	require.Equal(t, refuse, v.Reason)
	require.Equal(t, search.Revert, v.Decision)
}
