package codegen

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/kernel"
)

// The kernel adds rows of norms of branches as passes of several tokens have them, and in no other way.
func TestNormsOfRowsAreHeldToTheKernel(t *testing.T) {
	loop := func(p *ir.Program) *ir.Loop { return p.Variants[0].Body[1].(*ir.Loop) }
	stage := func(p *ir.Program, role string) *ir.Stage {
		body := loop(p).Body
		return body[slices.IndexFunc(body, func(s *ir.Stage) bool { return s.Role == role })]
	}
	norm := func(p *ir.Program, role string) *ir.Op { return op(stage(p, role), ir.RMSNORM) }
	second := func(p *ir.Program, b ir.Buffer) {
		b.Name, b.Space = "branch2", ir.SMEM
		p.Buffers = append(p.Buffers, b)
		s := stage(p, "mlp_add")
		s.Ops[len(s.Ops)-2].Out[0].Buf, s.Ops[len(s.Ops)-1].In[1].Buf = b.Name, b.Name
	}
	branch := func(p *ir.Program) ir.Buffer {
		return p.Buffers[slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == "branch" })]
	}
	const other = "other stages branch: want one for the whole step"
	for name, c := range map[string]struct {
		edit func(p *ir.Program)
		says string
	}{
		"the parts of another order": {func(p *ir.Program) {
			in := stage(p, "attn_add").Ops[0].In
			in[0], in[1] = in[1], in[0]
		}, "the kernel's add_norm_rows would compute"},
		"the whole in one part": {func(p *ir.Program) {
			s := stage(p, "attn_add")
			whole := s.Ops[1].In[0]
			s.Ops = slices.Delete(s.Ops, 1, 2)
			s.Ops[1].In[2] = whole
		}, "op 1 is"},
		"other weights than those of the rows": {func(p *ir.Program) {
			in := norm(p, "attn_add").In
			in[1].Dims = []ir.Range{upTo(72)}
		}, "the kernel's add_norm_rows would compute"},
		"a second buffer": {func(p *ir.Program) { second(p, branch(p)) }, other},
		"a buffer of sums": {func(p *ir.Program) {
			b := branch(p)
			b.DType = ir.F32
			second(p, b)
		}, "want one buffer of BF16 in SMEM for the whole step, [hidden]"},
		"in grains that are not tiles": {func(p *ir.Program) { stage(p, "mlp_add").Dist.Grain = 4 }, "AMK4002"},
		"of the words of an exchange before": {func(p *ir.Program) {
			stage(p, "mlp_add").Waits[0].Counter = "L{i}.act"
		}, "waits for L00.act, and the kernel for L00.down"},
	} {
		p := builtProgram(t, "gemma2-split-k_h200_bf16/rows8")
		_, err := CUDA(p)
		require.NoError(t, err)
		c.edit(p)
		_, err = CUDA(p)
		require.ErrorContains(t, err, c.says, name)
		require.Regexp(t, "AMK400[0-9]", err.Error(), name)
	}
}

// A thread has a bit for each word that it reads of a branch.
func TestNormsOfRowsAreBounded(t *testing.T) {
	check := func(hidden, rows, tokens int) error {
		b := &builder{p: &ir.Program{Model: ir.Model{Hidden: hidden, DTypes: ir.Uniform(ir.BF16)}},
			pass: ir.PassOf(1, tokens), d: &cudaData{Bodies: []*kernel.Body{kernel.AddNormRows},
				Descriptors: []*stage{{Of: &kernel.Stage{Parts: 2}}}}}
		return b.checkOwnRows(rows)
	}
	require.NoError(t, check(16384, 512, 8)) // of two parts
	require.NoError(t, check(16384, 4096, 1))
	require.ErrorContains(t, check(16384, 520, 8), "want at most 512 rows, by more SMs or passes of fewer tokens")
	require.ErrorContains(t, check(16388, 512, 8), "branches of 16388 values in 2 parts")
}

func upTo(n int) ir.Range { return ir.Span(ir.Int(0), ir.Int(n)) }
