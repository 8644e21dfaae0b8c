package validate_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

const withExperts, withBiases = "mixtral-window_h200_bf16", "gpt-oss-sinks_h200_bf16"

// What the kernel requires of experts.
var ofExperts = []elsewhere{
	{kernel.CodeModel, "adds biases of shape", "the kernel takes the rows of a matrix for those of its biases",
		goldenOf(withBiases, func(p *ir.Program) { bufferOf(p, "L{i}.experts_up.bias").Shape[1] += 8 }),
		sameAsOf(withBiases)},
	{kernel.CodeModel, "selects of matrices of shape", "the kernel takes the number of experts from the model's facts",
		goldenOf(withExperts, func(p *ir.Program) { p.Model.Experts++ }), notEmitted},
	{kernel.CodeModel, "no stage of layer 0 has an MLP", "the kernel takes the widths of MLPs from the model's facts",
		goldenOf(withExperts, func(p *ir.Program) { p.Model.Shared = 8 }), sameAsOf(withExperts)},
	{validate.CodeBackend, "leaves them there before it", "the producer of an SM reads what its router leaves",
		goldenOf(withExperts, func(p *ir.Program) {
			ids := *bufferOf(p, "L{i}.route.ids")
			ids.Name = "L{i}.passed"
			p.Buffers = append(p.Buffers, ids)
			v := &p.Variants[0]
			route := stageOf(v, "L{i}.route")
			left := route.Ops[slices.IndexFunc(route.Ops, func(o ir.Op) bool { return o.Code == ir.TOPK })].Out[1]
			to := left
			to.Buf = ids.Name
			route.Ops = append(route.Ops, ir.Op{Code: ir.COPY, In: []ir.Operand{left}, Out: []ir.Operand{to}})
			for _, name := range []string{"L{i}.experts_up", "L{i}.experts_down"} {
				op := selecting(v, name)
				op.In = slices.Clone(op.In)
				op.In[2] = to
			}
		}), notEmitted},
}

// selecting is the op of a stage that selects matrices.
func selecting(v *ir.Variant, name string) *ir.Op {
	st := stageOf(v, name)
	return &st.Ops[slices.IndexFunc(st.Ops, func(o ir.Op) bool { return o.Code == ir.SELECTED })]
}

// The producer of an SM waits for a choice before it streams what is selected, and streams in the order of the stages.
// A choice that needs what comes after that in the ring of any SM is refused, in whatever way it does.
func TestNothingOfAChoiceComesAfterIt(t *testing.T) {
	after := func(moved ...string) func(p *ir.Program) {
		return func(p *ir.Program) {
			for _, n := range p.Variants[0].Body {
				loop, is := n.(*ir.Loop)
				if !is {
					continue
				}
				at := func(name string) int {
					return slices.IndexFunc(loop.Body, func(s *ir.Stage) bool { return s.Name == name })
				}
				for _, name := range moved {
					from := at(name)
					st := loop.Body[from]
					loop.Body = slices.Delete(slices.Clone(loop.Body), from, from+1)
					loop.Body = slices.Insert(loop.Body, at("L{i}.experts_up")+1, st)
				}
			}
		}
	}
	for name, edit := range map[string]func(p *ir.Program){
		"a choice after what it selects":              after("L{i}.route"),
		"scores and choice after what they select":    after("L{i}.route", "L{i}.router"),
		"scores after the choice and what it selects": after("L{i}.router"),
		"the branch before it after what is selected": after("L{i}.o"),
		"a choice of the layer before in its own place": func(p *ir.Program) {
			op := selecting(&p.Variants[0], "L{i}.experts_up")
			op.In = slices.Clone(op.In)
			op.In[2].Buf = "L{i+1}.route.ids"
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := programOf(t, withExperts)
			require.True(t, validate.ProgramFor(kernel.Backend, p).OK)
			edit(p)
			require.False(t, validate.ProgramFor(kernel.Backend, p).OK)
		})
	}
}
