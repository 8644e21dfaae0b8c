package passes

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// exchangesOf counts the vectors that a layer publishes, of the first kind if there are several.
func exchangesOf(t *testing.T, p *ir.Program) int {
	n := 0
	rewrite.EachStage(&p.Variants[0], func(s *ir.Stage, loop *ir.Loop) {
		if loop != nil && s.Kind <= 1 && s.Signal != "" {
			n++
		}
	})
	require.Positive(t, n)
	return n
}

// ofExperts are the exchanges of a layer besides those of a dense one: the scores of its router; and of an expert that
// every token has, the activation.
var ofExperts = map[string]int{"sinks": 1, "experts": 2}

// normedAfter reports whether branches of a case end in a norm.
func normedAfter(name string) bool { return slices.Contains([]string{"capped", "whole", "wide"}, name) }

// With the residual on every SM, norms after branches take no exchange of their own.
func TestReplicatedResidual(t *testing.T) {
	for name, s := range goldenCases(t) {
		lowered(t, s, "replicate")
		require.Equal(t, 5+ofExperts[name], exchangesOf(t, s.Program), name)
		every, text := normedAfter(name), string(ir.Print(s.Program))
		require.Equal(t, every, strings.Contains(text, "buffer residual ACTIVATION F32 [4,16] SMEM"), name)
		require.Equal(t, every, strings.Contains(text, "RMSNORM(x[sm,0:16]"), name)
		require.Equal(t, !every, strings.Contains(text, "L{i}.x for"), name)
	}
}

// In a pass of several tokens the residual stays with its owners, who take the norms: an exchange more for each branch.
func TestNormsAtOwners(t *testing.T) {
	for name, s := range goldenCases(t) {
		s.Pass = ir.PassOf(1, 4)
		lowered(t, s, "replicate")
		normed, factor, text := normedAfter(name), "", string(ir.Print(s.Program))
		if name == "wide" { // a layer multiplies its sum
			factor = ", L{i}.factor[0]"
		}
		require.Equal(t, map[bool]int{true: 7, false: 5}[normed]+ofExperts[name], exchangesOf(t, s.Program), name)
		for _, line := range []string{
			"buffer branch ACTIVATION BF16 [4,16] SMEM",
			"branch[0:4,a:b] = RMSNORM(L{i}.o[0:4,a:b], L{i}.post_attn_norm.weight[a:b], L{i}.o[0:4,0:16])",
			"residual[0:4,a:b], L{i}.h[0:4,a:b] = ADD(residual[0:4,a:b], branch[0:4,a:b])",
			"residual[0:4,a:b], L{i+1}.x[0:4,a:b] = ADD(residual[0:4,a:b], branch[0:4,a:b]" + factor + ")",
		} {
			require.Equal(t, normed, strings.Contains(text, line), "%s: %s", name, line)
		}
	}
}
