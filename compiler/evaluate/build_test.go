package evaluate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
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
	r.Build = func(_ context.Context, l *compiler.Scheduled, _ progress.Func) (string, error) {
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
