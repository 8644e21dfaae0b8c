package kernel

import "amkc/ir"

// Generated text has names of its own, which follow from what buffers are for. Codegen renames a program by these
// tables, and readback gives what it rebuilds the same names.

// Shared is what the buffers are called that a step shares with its host, by their roles.
var Shared = map[string]string{ir.RoleToken: "token", ir.RoleNext: "next", ir.RoleLogits: "logits",
	ir.RoleStopIDs: "stop.ids", ir.RoleStopLast: "stop.last", ir.RoleSampling: "sampling",
	ir.RoleEmbeddings: "embeddings", ir.RoleHidden: "hidden"}

// NamesBy are the names of buffers by their roles.
func NamesBy(name func(role string) string) Names {
	return Names{Embeddings: name(ir.RoleEmbeddings), LastHidden: name(ir.RoleHidden), Sampling: name(ir.RoleSampling),
		Next: name(ir.RoleNext), StopIDs: name(ir.RoleStopIDs), StopLast: name(ir.RoleStopLast)}
}

// Named is what the buffers are called that a kernel has one of, or one for each layer, and no argument for.
var Named = Stage{Token: Shared[ir.RoleToken], Residual: "residual", Rounded: "x", Branch: "branch", Cache: "L{i}.kv",
	BestValue: "best.value", BestIndex: "best.index", NextOnSM: "next.sm", StopSM: "stop"}

// A Buffer is one that a stage uses: where the stage has it, and what it is called. ROLE and NORM stand for the role of
// the stage, and for what its norm is called (Norms).
type Buffer struct {
	At   func(s *Stage) *string
	Name string
}

// Buffers are those that stages use, but vectors that they publish.
var Buffers = []Buffer{
	{func(s *Stage) *string { return &s.Residual }, Named.Residual},
	{func(s *Stage) *string { return &s.Branch }, Named.Branch},
	{func(s *Stage) *string { return &s.Cache }, Named.Cache},
	{func(s *Stage) *string { return &s.BestValue }, Named.BestValue},
	{func(s *Stage) *string { return &s.BestIndex }, Named.BestIndex},
	{func(s *Stage) *string { return &s.NextOnSM }, Named.NextOnSM},
	{func(s *Stage) *string { return &s.StopSM }, Named.StopSM},
	{table, "embed.weight"},
	{func(s *Stage) *string { return &s.PositionTable }, "positions.weight"},
	{func(s *Stage) *string { return &s.Angles.Frequencies }, "rope.inv_freq"},
	{func(s *Stage) *string { return &s.Matrix }, "L{i}.ROLE.weight"},
	{func(s *Stage) *string { return &s.Bias }, "L{i}.ROLE.bias"},
	{func(s *Stage) *string { return &s.Curve }, "L{i}.xielu.weight"},
	{norm, "L{i}.NORM.weight"},
	{shift, "L{i}.NORM.bias"},
	{func(s *Stage) *string { return &s.QNorm }, "L{i}.q_norm.weight"},
	{func(s *Stage) *string { return &s.KNorm }, "L{i}.k_norm.weight"},
	{func(s *Stage) *string { return &s.QShift }, "L{i}.q_norm.bias"},
	{func(s *Stage) *string { return &s.KShift }, "L{i}.k_norm.bias"},
}

// Norms are what the norms of stages are called, by the roles of these.
var Norms = map[string]string{"qkv": "input_norm", "gate_up": "post_norm", "up": "post_norm", "lm_head": "final_norm",
	"attn_add": "post_attn_norm", "mlp_add": "post_mlp_norm"}

// A Vector is what stages of some roles publish: its name, and how long it is for each token.
type Vector struct {
	Name  string
	Roles []string
	Shape func(f *Facts) []int
}

// Vectors are all of them. What others add up is called after its stage.
var Vectors = []Vector{
	{"L{i}.x", []string{"embed", "down", "mlp_add"}, hidden},
	{"L{i}.qkv", []string{"qkv"}, func(f *Facts) []int { return []int{f.queryRows() + 2*f.keyRows()} }},
	{"L{i}.attn", []string{"attn"}, func(f *Facts) []int { return []int{f.queryRows()} }},
	{"L{i}.h", []string{"o", "attn_add"}, hidden},
	{"L{i}.o", nil, hidden},
	{"L{i}.act", []string{"gate_up", "up"}, func(f *Facts) []int { return []int{f.Intermediate} }},
	{"L{i}.down", nil, hidden},
	{"L{i}.part", []string{"part"},
		func(f *Facts) []int { return []int{f.KVHeads * f.Splits, f.Group(), f.HeadDim + 2} }},
	{Named.BestValue, nil, func(f *Facts) []int { return []int{f.SMs} }},
	{Named.BestIndex, nil, func(f *Facts) []int { return []int{f.SMs} }},
}

func hidden(f *Facts) []int { return []int{f.Hidden} }

// A Weight is a tensor of the checkpoint as it is packed: a matrix, or what multiplies or is added row by row.
type Weight struct {
	Name  string
	Shape func(f *Facts) []int
}

// Weights are all of them but biases of products, which are as long as these have rows.
var Weights = []Weight{
	{"positions.weight", func(f *Facts) []int { return []int{f.Positions, f.Hidden} }},
	{"embed.weight", func(f *Facts) []int { return []int{f.Vocab, f.Hidden} }},
	{"lm_head.weight", func(f *Facts) []int { return []int{f.Vocab, f.Hidden} }},
	{"L{i}.qkv.weight", func(f *Facts) []int { return []int{f.queryRows() + 2*f.keyRows(), f.Hidden} }},
	{"L{i}.o.weight", func(f *Facts) []int { return []int{f.Hidden, f.queryRows()} }},
	{"L{i}.gate_up.weight", func(f *Facts) []int { return []int{2 * f.Intermediate, f.Hidden} }},
	{"L{i}.up.weight", func(f *Facts) []int { return []int{f.Intermediate, f.Hidden} }},
	{"L{i}.down.weight", func(f *Facts) []int { return []int{f.Hidden, f.Intermediate} }},
	{"L{i}.xielu.weight", func(*Facts) []int { return []int{4} }},
	{"L{i}.q_norm.weight", func(f *Facts) []int { return []int{f.gains(f.Heads)} }},
	{"L{i}.k_norm.weight", func(f *Facts) []int { return []int{f.gains(f.KVHeads)} }},
	{"L{i}.input_norm.weight", hidden},
	{"L{i}.post_norm.weight", hidden},
	{"L{i}.post_attn_norm.weight", hidden},
	{"L{i}.post_mlp_norm.weight", hidden},
	{"final_norm.weight", hidden},
}

// gains is how many weights the norms of n heads have.
func (f *Facts) gains(heads int) int {
	if f.OwnGains {
		return heads * f.HeadDim
	}
	return f.HeadDim
}
