package codegen

import (
	"slices"
	"testing"

	"amkc/ir"

	"github.com/stretchr/testify/require"
)

// The kernel takes an SM's tiles to be of one part of the columns, and adds parts up in their order.
func TestSplitColumnsAreHeldToTheKernel(t *testing.T) {
	stage := func(p *ir.Program, role string) *ir.Stage {
		body := p.Variants[0].Body[1].(*ir.Loop).Body
		return body[slices.IndexFunc(body, func(s *ir.Stage) bool { return s.Role == role })]
	}
	for name, edit := range map[string]func(p *ir.Program){
		"of another part": func(p *ir.Program) {
			in := &stage(p, "down").Ops[0].In[0]
			in.Dims = []ir.Range{upTo(in.Dims[0].Hi.At(0))}
		},
		"all columns of x": func(p *ir.Program) { stage(p, "down").Ops[0].In[0].Dims = []ir.Range{upTo(384)} },
		"empty":            func(p *ir.Program) { stage(p, "down").Dist.Empty = true },
		"grains of two parts": func(p *ir.Program) {
			stage(p, "down").Dist.Grain = 16
		},
		"one part less": func(p *ir.Program) {
			s := stage(p, "mlp_add")
			s.Ops = slices.Delete(s.Ops, 0, 1)
			s.Ops[0].In[0] = s.Ops[0].In[1]
		},
		"another order": func(p *ir.Program) {
			in := stage(p, "attn_add").Ops[0].In
			in[0], in[1] = in[1], in[0]
		},
	} {
		p := goldenPrograms(t)["gemma2-split-k_h200_bf16"]
		_, err := CUDA(p)
		require.NoError(t, err)
		edit(p)
		_, err = CUDA(p)
		require.Error(t, err, name)
		require.Regexp(t, "AMK400[0-9]", err.Error(), name)
	}
}

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
