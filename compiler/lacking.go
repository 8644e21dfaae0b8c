package compiler

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate/kernel"
)

// Lacking says which stages of a program the kernel has no body for, and nil where it has one for each op. The proof
// for the kernel would refuse them op by op, and the cost model stage by stage.
func Lacking(model string, p *ir.Program) error {
	var stages, ops []string
	add := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for i := range p.Variants {
		p.Variants[i].Each(func(s *ir.Stage, _ *ir.Loop) {
			for k := range s.Ops {
				switch op := &s.Ops[k]; {
				case !kernel.Backend.Implements(op.Code):
					add(&stages, s.Role)
					add(&ops, op.Code.String())
				case op.Code == ir.ATTENTION && len(op.In) > 5:
					add(&stages, s.Role)
					add(&ops, op.Code.String()+" with sinks")
				}
			}
		})
	}
	if len(ops) == 0 {
		return nil
	}
	return diag.Errorf(codeLacking, model, "the kernel has no body yet for stages %s, which compute %s, so nothing is "+
		"emitted; run, chat, logits and serve take the model with --device ref", strings.Join(stages, ", "),
		strings.Join(ops, ", "))
}
