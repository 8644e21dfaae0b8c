package ir

// Graph is level 1: one node per model operation, with shapes and the state-dict names of its weights. Importers build
// it, pass lower turns it into a Program.
type Graph struct {
	Model   Model
	Rope    Rope
	Weights []GraphWeight // every tensor of the checkpoint that a node consumes, in the order of first use
	Nodes   []GraphNode   // in execution order
}

// Rope is the rotary embedding: one angle step a position for each of the HeadDim/2 rotation pairs.
type Rope struct {
	InvFreq []float32 // length HeadDim/2
}

// GraphWeight is a tensor of the checkpoint.
type GraphWeight struct {
	Key   string
	Shape []int
}

// GraphNode is one operation of the model. Layer is -1 outside the layers.
type GraphNode struct {
	Name    string // L03.q_proj, final_norm
	Op      string // embed, rmsnorm, rmsnorm_heads, linear, rope, attention, kv_append, add, silu_mul, argmax
	Layer   int
	Inputs  []string // names of the nodes whose values it reads
	Weights []string // state-dict keys; of a linear its matrix, and its bias if it has one
	Shape   []int    // of its result
}
