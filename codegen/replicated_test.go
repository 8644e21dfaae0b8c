package codegen

import (
	"slices"
	"testing"

	"amkc/ir"

	"github.com/stretchr/testify/require"
)

// The kernel adds the norm of a branch where the residual is read next, so that no other stage may stand between.
func TestAddedNormsAreReadAtOnce(t *testing.T) {
	const program = "gemma3-tied_h200_bf16"
	loop := func(p *ir.Program) *ir.Loop { return p.Variants[0].Body[1].(*ir.Loop) }
	at := func(p *ir.Program, role string) int {
		return slices.IndexFunc(loop(p).Body, func(s *ir.Stage) bool { return s.Role == role })
	}
	p := goldenPrograms(t)[program]
	_, err := CUDA(p)
	require.NoError(t, err)
	body := loop(p).Body
	next := at(p, "gate_up")
	body[next], body[next+1] = body[next+1], body[next]
	_, err = CUDA(p)
	require.ErrorContains(t, err, "stage L{i}.down: error: comes between stage L{i}.attn_add, which adds to the "+
		"residual, and one that reads it")

	p = goldenPrograms(t)[program]
	body = loop(p).Body
	last := at(p, "mlp_add")
	body[last].Signal = "L{i}.down"
	_, err = CUDA(p)
	require.ErrorContains(t, err, "AMK4003")
}
