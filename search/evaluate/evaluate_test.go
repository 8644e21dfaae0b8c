package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
	"amkc/search"
)

const small = "models/zoo/llama-gqa"

func requestFor(t *testing.T, candidate, baseline knobs.Settings) Request {
	t.Helper()
	return Request{Options: optionsFor(t, small, "h200"), Candidate: candidate, Baseline: baseline,
		Device: search.DeviceCost, Positions: []int{0, 40}, Rung: search.Final, Rules: search.DefaultRules()}
}

func judgedAs(t *testing.T, r Request) *search.Verdict {
	t.Helper()
	v, err := Evaluate(t.Context(), r)
	require.NoError(t, err)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	_, err = search.ParseVerdict(text, "eval")
	require.NoError(t, err, "every verdict is a well-formed one")
	return v
}

func TestPredicted(t *testing.T) {
	barrier := knobs.Settings{"tiling.loop.barrier": "1"}
	v := judgedAs(t, requestFor(t, nil, barrier))
	require.Equal(t, search.Pass, v.Class)
	require.Equal(t, search.Shortlist, v.Decision, v.Why)
	require.Less(t, v.Ratio.Mean, 0.99)
	require.Equal(t, []int{0, 40}, []int{v.At[0].Position, v.At[1].Position})
	require.Len(t, v.Build, 64)
	require.True(t, v.Proof.OK)
	require.True(t, v.Correctness.Passed)
	require.True(t, *v.Correctness.Spans[0].Identical)
	require.Contains(t, v.Machine, "cost model, predicted")

	p := v.At[0].Predicted
	require.InDelta(t, v.At[0].Candidate.Median, p.Candidate, 1e-9)
	describe := NewDescriber(optionsFor(t, small, "h200"), []int{0, 40})
	log, err := describe(nil, barrier)
	require.NoError(t, err)
	require.InDelta(t, v.Ratio.Mean, math.Exp(log), 1e-9)
	log, err = describe(barrier, barrier)
	require.NoError(t, err)
	require.Zero(t, log)
	log, err = describe(barrier, nil)
	require.NoError(t, err)
	require.InDelta(t, 1/v.Ratio.Mean, math.Exp(log), 1e-9, "another baseline")
	_, err = describe(knobs.Settings{"pipelining_depth": "16"}, nil)
	require.ErrorContains(t, err, "cannot hold a ring")

	back := requestFor(t, barrier, nil)
	back.Rung = search.Screen
	v = judgedAs(t, back)
	require.Equal(t, search.Revert, v.Decision, v.Why)
	require.Len(t, v.At, 2, "a setting may gain at the second position alone")
	require.Empty(t, v.Build)
	require.Nil(t, v.Correctness)
}

// Another order of additions may change bits, and another value of any other knob may not.
func TestOrderOfAdditions(t *testing.T) {
	v := judgedAs(t, requestFor(t, knobs.Settings{"tiling.attention.split_from": "0"}, nil))
	require.Equal(t, search.Pass, v.Class)
	require.False(t, *v.Correctness.Spans[len(v.Correctness.Spans)-1].Identical)
	require.Positive(t, v.Correctness.Spans[len(v.Correctness.Spans)-1].RMS)
}

// What a candidate is refused for is in the verdict: with its code, and without a time.
func TestRefusedCandidates(t *testing.T) {
	v := judgedAs(t, requestFor(t, knobs.Settings{"pipelining_depth": "16"}, nil))
	require.Equal(t, search.Rejected, v.Class)
	require.Equal(t, "AMK2007", v.Reason.Code)
	require.Nil(t, v.Timing)
	require.Nil(t, v.Proof)
	require.Equal(t, search.Revert, v.Decision)
	v = judgedAs(t, requestFor(t, knobs.Settings{"tiling.ring.pase": "16"}, nil))
	require.Equal(t, "AMK2001", v.Reason.Code)
}

// What is wrong with anything but the candidate is not a verdict.
func TestFaultsOfOthers(t *testing.T) {
	_, err := Evaluate(t.Context(), requestFor(t, nil, knobs.Settings{"pipelining_depth": "16"}))
	require.ErrorContains(t, err, "cannot hold a ring")
	r := requestFor(t, nil, nil)
	r.Positions = []int{1 << 20}
	_, err = Evaluate(t.Context(), r)
	require.ErrorContains(t, err, "for which the model is compiled")
	r = requestFor(t, nil, nil)
	r.Options.Model = "nowhere"
	_, err = Evaluate(t.Context(), r)
	require.Error(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err = Evaluate(ctx, requestFor(t, nil, nil))
	require.EqualError(t, err, "enough")
}

func TestLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	v, err := Evaluate(ctx, requestFor(t, nil, nil))
	require.NoError(t, err)
	require.Equal(t, search.Timeout, v.Class)
	require.Equal(t, "AMK6102", v.Reason.Code)
}

// damaged lowers a model and changes its program.
func damaged(change func(p *ir.Program)) func(compiler.Options) (*compiler.Scheduled, error) {
	return func(o compiler.Options) (*compiler.Scheduled, error) {
		l, err := compiler.RunPasses(o)
		if err == nil {
			change(l.Program)
		}
		return l, err
	}
}

// A program that is proved and computes something else is caught by the reference VM.
func TestWrongMaths(t *testing.T) {
	r := requestFor(t, nil, nil)
	changed := false
	r.Lower = damaged(func(p *ir.Program) {
		for i := range p.Buffers {
			if b := &p.Buffers[i]; b.Kind == ir.Weight && !changed && len(b.Pieces) == 1 && len(b.Shape) == 1 {
				for k := range p.Buffers {
					if o := &p.Buffers[k]; k != i && o.Kind == ir.Weight && len(o.Pieces) == 1 && len(o.Shape) == 1 &&
						o.Count == b.Count && o.Shape[0] == b.Shape[0] {
						b.Pieces[0], o.Pieces[0], changed = o.Pieces[0], b.Pieces[0], true
						return
					}
				}
			}
		}
	})
	v := judgedAs(t, r)
	require.True(t, changed)
	require.Equal(t, search.Fail, v.Class)
	require.True(t, v.Proof.OK)
	require.Equal(t, "AMK6104", v.Reason.Code)
	require.False(t, v.Correctness.Passed)
}

// Nothing that is refused is built or launched.
func TestNothingRefusedIsLaunched(t *testing.T) {
	g := newFakeGPU()
	r := requestFor(t, knobs.Settings{"pipelining_depth": "16"}, nil)
	v := g.judges(t, r)
	require.Equal(t, search.Rejected, v.Class)
	r = requestFor(t, nil, nil)
	r.Lower = damaged(func(p *ir.Program) { p.Variants[0].Counters = nil })
	v = g.judges(t, r)
	require.Equal(t, search.Rejected, v.Class)
	require.False(t, v.Proof.OK)
	require.NotEmpty(t, v.Proof.Findings)
	require.Empty(t, g.built)
	require.Empty(t, g.launched)
}

func TestRegisters(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" || !compiler.CanCompileCUDA() {
		t.Skip("takes nvcc: AMKC_LONG=1")
	}
	r := requestFor(t, nil, nil)
	r.Registers = true
	v := judgedAs(t, r)
	names := []string{}
	for _, k := range v.Registers {
		names = append(names, k.Kernel)
	}
	require.Contains(t, strings.Join(names, " "), "amk_decode")
}
