package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/refvm"
	"amkc/validate"
)

// A configuration rotates whole stages. A program may list the tasks of one: that is proved and run like any other,
// and the kernel, which computes its spans, refuses it.
func TestListedTasks(t *testing.T) {
	seed := uint64(3)
	l, err := RunPasses(Options{Model: "../testdata/models/zoo/llama-gqa", RandomSeed: &seed, MaxSeq: 32,
		Target: ir.FindTarget("t4"),
		Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"loop": {"roll": 0}}}})
	require.NoError(t, err)
	defer l.Close()
	run := func() []float32 {
		require.Empty(t, ir.Check(l.Program))
		require.True(t, validate.Program(l.Program).OK)
		s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Round: refvm.Device})
		require.NoError(t, err)
		logits, _, err := s.Step(5)
		require.NoError(t, err)
		return append([]float32(nil), logits...)
	}
	want := run()
	listed := 0
	for i := range l.Program.Variants {
		for _, n := range l.Program.Variants[i].Body {
			if s, ok := n.(*ir.Stage); ok && s.Name == "L00.gate_up" {
				spans := s.Dist.Tasks(0)
				for k := range spans {
					spans[k].SM = (spans[k].SM + 7*k) % l.Program.Target.SMs // no rotation does this
				}
				s.Dist = ir.Dist{Kind: ir.Explicit, Spans: spans}
				listed++
			}
		}
	}
	require.Positive(t, listed)
	require.Equal(t, want, run())
	_, err = codegen.CUDA(l.Program)
	require.ErrorContains(t, err, "is distributed explicit over 0 SMs, want spread over 40 [AMK4002]")
}
