package evaluate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/knobs"
	"amkc/runtime/host"
	"amkc/search"
)

// madeUp is a profile of two SMs, 100 µs of each: 6 for embed, 40 for qkv, 30 for attention in two stages, 23.5 for
// down and half a microsecond for o. They wait for exchanges for 30 of them, and compute for 60.
func madeUp() *host.Profile {
	p := &host.Profile{Position: 1, Steps: 1, SMs: 2}
	for sm := range 2 {
		at := 0.0
		add := func(stage, kind string, us float64) {
			p.Spans = append(p.Spans, host.Span{SM: sm, Role: "consumer", Kind: kind, Stage: stage, Start: at,
				End: at + us})
			at += us
		}
		add("embed", "compute", 6)
		add("L00.qkv", "exchange wait", 10)
		add("L00.qkv", "compute", 14)
		add("L00.qkv", "signal", 6)
		add("L00.part", "exchange wait", 8)
		add("L00.part", "compute", 12)
		add("L00.attn", "exchange wait", 7)
		add("L00.attn", "signal", 3)
		add("L00.o", "compute", 0.5)
		add("L01.down", "compute", 19.5)
		add("L01.down", "exchange wait", 4)
		add("L01.qkv", "compute", 8)
		add("L01.qkv", "exchange wait", 1)
		add("L01.qkv", "signal", 1)
		// The producer works alongside them.
		p.Spans = append(p.Spans, host.Span{SM: sm, Role: "producer", Kind: "slot wait", Stage: "L00.o", End: 90})
	}
	return p
}

var sharesOfMadeUp = search.Shares{"qkv": 0.4, "attention": 0.3, "o": 0.005, "gate_up": 0, "down": 0.235, "lm_head": 0,
	"ring": 0.6, "placement": 0.6, "exchange": 0.3, "layers": 0.3}

func requireShares(t *testing.T, want, got search.Shares) {
	t.Helper()
	require.Len(t, got, len(want))
	for region, share := range want {
		require.InDelta(t, share, got[region], 1e-12, region)
	}
}

func TestSharesOfProfile(t *testing.T) {
	requireShares(t, sharesOfMadeUp, sharesOfProfile(madeUp()))
	require.Nil(t, sharesOfProfile(nil))
	require.Nil(t, sharesOfProfile(&host.Profile{}), "no spans")
	lost := madeUp()
	lost.Dropped = 1
	require.Nil(t, sharesOfProfile(lost))
	idle := madeUp()
	for i := range idle.Spans {
		idle.Spans[i].End = idle.Spans[i].Start
	}
	require.Nil(t, sharesOfProfile(idle), "spans without a time")
	producers := madeUp()
	for i := range producers.Spans {
		producers.Spans[i].Role = "producer"
	}
	require.Nil(t, sharesOfProfile(producers))
}

// The start of a campaign, which is judged against itself in full, is built with all kernels and profiled, and its
// shares are those of the profile.
func TestStartIsProfiled(t *testing.T) {
	g := newFakeGPU()
	g.profile = madeUp()
	pace := knobs.Settings{"tiling.ring.pace": "500"}
	r := requestFor(t, pace, pace)
	v := g.judges(t, r)
	require.Equal(t, search.Pass, v.Class)
	require.Equal(t, search.SharesOfProfile, v.SharesOf)
	requireShares(t, sharesOfMadeUp, v.Shares)
	require.Equal(t, []string{incumbent}, g.profiled, "the baseline, once")
	require.Equal(t, []compiler.Kernels{compiler.AllKernels, compiler.AllKernels}, g.kernels)

	// What is built ahead is what is looked for then.
	ahead := newFakeGPU()
	r.Device, r.Build, r.Measure = search.DeviceCUDA, ahead.build, ahead.take
	_, err := Build(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, g.kernels, ahead.kernels)
	require.Equal(t, g.built, ahead.built)
	require.Empty(t, ahead.profiled)
}

// Without a profile shares are predicted, and a verdict has the same fields as ever.
func TestStartThatHasNoProfile(t *testing.T) {
	for name, profile := range map[string]*host.Profile{"fails": nil, "loses spans": {Dropped: 3}} {
		g := newFakeGPU()
		g.profile = profile
		v := g.judges(t, requestFor(t, nil, nil))
		require.Equal(t, search.Pass, v.Class, name)
		require.Equal(t, []string{incumbent}, g.profiled, name)
		predicted := judgedAs(t, requestFor(t, nil, nil))
		require.NotEmpty(t, predicted.Shares)
		require.Equal(t, predicted.Shares, v.Shares, name)
		require.Empty(t, v.SharesOf, name)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(text), "shares_of", name)
	}
}

// Nothing else is profiled, and what nothing launches is not built for it.
func TestNothingElseIsProfiled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request)
		want   compiler.Kernels
	}{
		"another candidate": {func(r *Request) { r.Candidate = knobs.Settings{"tiling.ring.pace": "500"} },
			compiler.SearchKernels},
		"a screening": {func(r *Request) { r.Rung = search.Screen }, compiler.SearchKernels},
		"a race":      {func(r *Request) { r.Rung = search.Race }, compiler.SearchKernels},
		"a stage":     {func(r *Request) { r.Stage = "qkv" }, compiler.PartKernels},
	} {
		g := newFakeGPU()
		g.profile = madeUp()
		g.stage = &host.BisectReport{Passed: true}
		r := requestFor(t, nil, nil)
		c.change(&r)
		v := g.judges(t, r)
		require.Equal(t, search.Pass, v.Class, name)
		require.Empty(t, g.profiled, name)
		require.Empty(t, v.SharesOf, name)
		require.Equal(t, []compiler.Kernels{c.want, c.want}, g.kernels, name)
	}
	require.False(t, (&Request{Device: search.DeviceCost, Rung: search.Final}).profiles(), "predictions")
}
