package passes

import (
	"slices"

	"amkc/ir"
)

// atOwners lets the owners of the residual take the norms of branches: each reads a whole branch, normalises its rows
// of it, rounds them as a norm that is handed over is rounded, and adds them. A norm by itself, whose rows the owners
// wait for, would be an exchange more.
func (r *replication) atOwners() error {
	gone := map[*ir.Stage]bool{}
	for add, norm := range r.norms {
		gone[norm] = true
		first, sum := norm.Ops[0], *lastOp(add)
		rows := slices.Clone(sum.In[1].Dims) // of all tokens
		to := view(r.rounded, rows...)
		first.In = []ir.Operand{view(first.In[0].Buf, rows...), view(first.In[1].Buf, rows[len(rows)-1]), first.In[0]}
		first.Out = []ir.Operand{to}
		sum.In = []ir.Operand{sum.In[0], to}
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
