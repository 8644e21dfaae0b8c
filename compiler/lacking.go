package compiler

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	form "amkc/kernel"
	"amkc/validate/kernel"
)

// Lacking says what of the programs of a build the kernel has no form for, and nil where it has one for all. The proof
// for the kernel would refuse it op by op, and the cost model stage by stage.
func Lacking(model string, of ...*ir.Program) error {
	var stages, lacks []string
	add := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, p := range of {
		buffers := ir.BufferDirectory(p)
		for i := range p.Variants {
			p.Variants[i].Each(func(s *ir.Stage, l *ir.Loop) {
				for k := range s.Ops {
					for _, what := range lacksOf(p, &s.Ops[k], buffers, ir.FirstIndex(s, l)) {
						add(&stages, s.Role)
						add(&lacks, s.Ops[k].Code.String()+what)
					}
				}
			})
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return diag.Errorf(codeLacking, model, "the kernel has no body yet for stages %s, which compute %s, so nothing is "+
		"emitted; run, chat, logits and serve take the model with --device ref", strings.Join(stages, ", "),
		strings.Join(lacks, ", "))
}

// lacksOf says what the kernel lacks of an op, each as what follows its name.
func lacksOf(p *ir.Program, op *ir.Op, buffers *ir.Directory, index int) []string {
	switch {
	case !kernel.Backend.Implements(op.Code):
		return []string{""}
	case op.Code == ir.TOPK && op.Has("jitter"):
		return []string{" with jitter"}
	case op.Code == ir.TOPK && op.IntAt("groups", 0, 1) > 32:
		return []string{" of more than 32 groups"}
	case (op.Code == ir.ShortConv || op.Code == ir.StateConv) && op.IntAt("taps", 0, 0) > form.MaxTaps:
		return []string{fmt.Sprintf(" of more than %d positions", form.MaxTaps)}
	case op.Code == ir.ShortConv && !p.Model.StatesDiffer():
		return []string{" in all layers"}
	case op.Code == ir.RECURRENCE:
		return lacksOfStates(p, op, buffers, index)
	case op.Code == ir.SELECTED:
		return lacksOfExperts(p, op, buffers, index)
	}
	return nil
}

// lacksOfStates says what the kernel lacks of a recurrence.
func lacksOfStates(p *ir.Program, op *ir.Op, buffers *ir.Directory, index int) (lacks []string) {
	if p.Pass.NumTokens() > 1 {
		lacks = append(lacks, " in passes of several tokens")
	}
	if !p.Model.StatesDiffer() {
		lacks = append(lacks, " in all layers")
	}
	m, err := buffers.At(op.In[5].Buf, index)
	if err != nil {
		return lacks
	}
	shape := p.Buffers[m.Declared].Shape
	keys, values := shape[len(shape)-2], shape[len(shape)-1]
	if !form.StatesFit(keys, values) {
		lacks = append(lacks, fmt.Sprintf(" of states of %d by %d", keys, values))
	}
	return lacks
}

// lacksOfExperts says what the kernel lacks of a product with the matrices of experts.
func lacksOfExperts(p *ir.Program, op *ir.Op, buffers *ir.Directory, index int) (lacks []string) {
	if x, err := buffers.At(op.In[0].Buf, index); err == nil && p.Buffers[x.Declared].Space == ir.SMEM {
		lacks = append(lacks, " of the residual without a norm")
	}
	if m, err := buffers.At(op.In[1].Buf, index); err == nil {
		b := &p.Buffers[m.Declared]
		if b.Shape[1]%8 != 0 || b.Shape[2]%4 != 0 {
			lacks = append(lacks, fmt.Sprintf(" of %d rows and %d columns; want multiples of 8 and 4", b.Shape[1],
				b.Shape[2]))
		}
	}
	if k := chosenOf(op); k < 2 || k > mostChosen {
		lacks = append(lacks, fmt.Sprintf(" of %d experts for a token, and not 2 to %d", k, mostChosen))
	}
	return lacks
}

// mostChosen is how many experts a token has at most: the sums of a tile with each are in shared memory.
const mostChosen = 8

// chosenOf is how many matrices a product selects.
func chosenOf(op *ir.Op) int {
	last := op.In[2].Dims[len(op.In[2].Dims)-1]
	return last.Hi.At(0) - last.Lo.At(0)
}
