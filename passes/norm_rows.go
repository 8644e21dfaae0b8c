package passes

import (
	"slices"

	"amkc/ir"
)

// atOwners lets the owners of the residual take the norms of branches: each reads a whole branch, normalises its rows
// of it, rounds them as a norm that is published is rounded, and adds them. A norm on its own, whose rows the owners
// wait for, would be an exchange more.
func (r *replication) atOwners() error {
	gone := map[*ir.Stage]bool{}
	for add, norm := range r.norms {
		gone[norm] = true
		first, sum := norm.Ops[0], *lastOp(add)
		rows := func(buf string) ir.Operand { return view(buf, slices.Clone(sum.In[1].Dims)...) } // of all tokens
		whole, gain := first.In[0], first.In[1].Buf
		first.In = []ir.Operand{rows(whole.Buf), view(gain, task), whole}
		first.Out = []ir.Operand{rows(r.rounded)}
		sum.In = []ir.Operand{sum.In[0], rows(r.rounded)}
		add.Ops, add.Waits = []ir.Op{first, sum}, norm.Waits
	}
	err := eachBody(r.v, func(stages []*ir.Stage, _ *ir.Loop) ([]*ir.Stage, error) {
		return slices.DeleteFunc(stages, func(s *ir.Stage) bool { return gone[s] }), nil
	})
	if err != nil {
		return err
	}
	return setThresholds(r.v)
}
