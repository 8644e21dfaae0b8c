package kernel

import "amkc/ir"

// Generated text has names of its own, which follow from what buffers are for. Codegen renames a program by these
// tables, and readback gives what it rebuilds the same names.

// Shared has the names of the buffers that a step shares with its host, by role.
var Shared = map[string]string{ir.RoleToken: "token", ir.RoleNext: "next", ir.RoleLogits: "logits",
	ir.RoleStopIDs: "stop.ids", ir.RoleStopLast: "stop.last", ir.RoleSampling: "sampling",
	ir.RoleEmbeddings: "embeddings", ir.RoleHidden: "hidden"}

// NamesBy are the names of buffers by their roles.
func NamesBy(name func(role string) string) Names {
	return Names{Embeddings: name(ir.RoleEmbeddings), LastHidden: name(ir.RoleHidden), Sampling: name(ir.RoleSampling),
		Next: name(ir.RoleNext), StopIDs: name(ir.RoleStopIDs), StopLast: name(ir.RoleStopLast)}
}

// Named has the names of buffers without an argument, of which a kernel has one, or one for each layer.
var Named = Stage{Token: Shared[ir.RoleToken], Residual: "residual", Rounded: "x", Branch: "branch", Cache: "L{i}.kv",
	BestValue: "best.value", BestIndex: "best.index", NextOnSM: "next.sm", StopSM: "stop",
	Ids: "L{i}.route.ids", Shares: "L{i}.route", Gate: "L{i}.shared_gate", Inputs: "L{i}.conv_rows",
	Memory: "L{i}.state", Pending: "L{i}.state_pending", Before: "L{i}.state_inputs"}

// A Buffer is a buffer that stages use, except the vectors that they publish: its name, its place in a Stage, and the
// shape if it is a weight. ROLE and NORM stand for the role of the stage, and for the name of its norm (Norms).
type Buffer struct {
	Name  string
	At    func(s *Stage) *string // nil: its Name is what ROLE or NORM makes of another
	Shape func(f *Facts) []int   // nil: it is not a weight, or its name is made of ROLE or NORM
	Exact bool                   // a weight of float32, whatever others have
	// Paired says that its rows are in the pairs of a rotation: layers with heads of another size have another family.
	Paired bool
	// State is what a layer keeps in it from step to step, nothing in a layer without such a stage. nil: a
	// layer keeps nothing in it.
	State func(f *ir.LayerFacts) ir.State
	// Keeps is the shape of a STATE of a layer, nil in a layer without such a stage. nil: it has no STATE.
	Keeps func(f *ir.LayerFacts) []int
}

// A Vector is published by stages of some roles: it has a name, and a length per token. Vectors of parts, which other
// stages add up, are named after their stage. One that is Exact has words of float32, whatever others have.
type Vector struct {
	Name  string
	Roles []string
	Shape func(f *Facts) []int
	Exact bool
}

func hidden(f *Facts) []int { return []int{f.Hidden} }

// gains is how many weights the norms of n heads have.
func (f *Facts) gains(heads int) int {
	if f.OwnGains {
		return heads * f.HeadDim
	}
	return f.HeadDim
}
