package ir

import (
	"fmt"
	"iter"
	"slices"

	"amkc/ir/transform"
)

// Graph is level 1: one node per model operation, with shapes and the state-dict names of its weights. Importers build
// it, pass lower turns it into a Program. Layers with the same nodes are one kind, described once.
type Graph struct {
	Model  Model
	Rope   Rope        // of all kinds of layers that have none of their own
	Before []GraphNode // of the embedding; in execution order, as the others
	Kinds  []LayerKind
	Layers []int       // the kind of each layer
	After  []GraphNode // from the norm after the last layer to the choice of a token
}

// A LayerKind has the nodes of the layers of one kind. In names of nodes and keys of weights, {i} is the number of the
// layer.
type LayerKind struct {
	Name  string // full_attention, sliding_attention; for messages
	Rope  *Rope  // its own, or one that some kinds share; nil: that of the graph
	Nodes []GraphNode
}

// RopeOf returns the rotary embedding of a kind of layers.
func (g *Graph) RopeOf(kind int) *Rope {
	if own := g.Kinds[kind].Rope; own != nil {
		return own
	}
	return &g.Rope
}

// RopeOwner returns the first kind of layers that has the rotary embedding of a kind; -1 for that of the graph.
func (g *Graph) RopeOwner(kind int) int {
	own := g.Kinds[kind].Rope
	if own == nil {
		return -1
	}
	return slices.IndexFunc(g.Kinds, func(k LayerKind) bool { return k.Rope == own })
}

// Rope is the rotary embedding: one angle step per position for each of the rotation pairs of a head, which a rotation
// turns and scales. With fewer than HeadDim/2 of them, elements j and j+Turned()/2 of a head are a pair, for j below
// Turned()/2, and the elements from Turned() on are left as they are.
type Rope struct {
	InvFreq     []float32 // from 1 to HeadDim/2 of them
	Scale       float64   // multiplies cos and sin; above 0, and 1 for a plain rotation
	Interleaved bool      // elements 2j and 2j+1 are a pair instead
}

// Turned is the number of elements of a head that are rotated, from the first on.
func (r *Rope) Turned() int { return 2 * len(r.InvFreq) }

// GraphWeight is the part of a tensor of the checkpoint that a node uses.
type GraphWeight struct {
	Key   string
	Shape []int // as the node takes it
	// Chain converts the tensor to the node's operand. Stored is the shape of the tensor, if it differs.
	Chain  transform.Chain
	Stored []int
	// Storage is the type in which a matrix is streamed; nil: that of the model's weights.
	Storage *Storage
	// Parts are the tensors that it consists of, in order, and Key is empty; nil: it consists of one.
	Parts []GraphWeight
}

// String is the key, inside the transforms if there are any; of several tensors, theirs.
func (w GraphWeight) String() string {
	switch {
	case w.Parts != nil:
		return fmt.Sprint(w.Parts)
	case len(w.Chain) == 0:
		return w.Key
	}
	return w.Chain.Around(w.Key)
}

// Tensors are the tensors of a weight, in order: itself, or its parts.
func (w *GraphWeight) Tensors() []GraphWeight {
	if w.Parts != nil {
		return w.Parts
	}
	return []GraphWeight{*w}
}

// tensor returns the weight as the checkpoint has it.
func (w *GraphWeight) tensor(key string) GraphWeight {
	if w.Stored != nil {
		return GraphWeight{Key: key, Shape: w.Stored}
	}
	return GraphWeight{Key: key, Shape: w.Shape}
}

// Stream, as an input of a node, is the residual stream at the beginning of the layer, and for nodes after the layers
// that of the last one.
const Stream = "stream"

// GraphNode is one operation of the model. Names are those within a layer.
type GraphNode struct {
	Name    string // q_proj, final_norm
	Op      string // embed, rmsnorm, layernorm, linear, rope, attention, kv_append, add, argmax, or a Finisher's Func
	Inputs  []string
	Weights []GraphWeight // of a linear or a norm what it multiplies by, and its bias if it has one
	Shape   []int         // of its result
	Params  []Param
}

// Streams reports whether the first weight of a node is a matrix that a step streams: of a linear, or those of experts.
func (n *GraphNode) Streams() bool { return n.Op == "linear" || n.OfExperts() }

// OfExperts reports whether the first weight of a node is the matrices of experts, of which a token needs some.
func (n *GraphNode) OfExperts() bool { return n.Op == "experts_up" || n.Op == "experts_down" }

// IntOr returns an integer parameter, or def when it is absent.
func (n *GraphNode) IntOr(key string, def int) int { return (&Op{Params: n.Params}).IntAt(key, 0, def) }

// FloatOr returns a parameter as a float, or def when it is absent.
func (n *GraphNode) FloatOr(key string, def float64) float64 {
	return (&Op{Params: n.Params}).FloatOr(key, def)
}

// Weights are all tensors of the checkpoint that a node uses, with their stored shapes, in the order of first use. Of
// layers with experts they may be many times as many as a file has, so that who looks for them stops in time.
func (g *Graph) Weights() iter.Seq[GraphWeight] {
	return func(yield func(GraphWeight) bool) {
		seen := map[string]bool{}
		each := func(nodes []GraphNode, layer int) bool {
			for i := range nodes {
				for _, of := range nodes[i].Weights {
					for _, w := range of.Tensors() {
						key, err := ResolveKey(w.Key, layer)
						if err != nil || seen[key] {
							continue
						}
						if seen[key] = true; !yield(w.tensor(key)) {
							return false
						}
					}
				}
			}
			return true
		}
		if !each(g.Before, 0) {
			return
		}
		for layer, kind := range g.Layers {
			if !each(g.Kinds[kind].Nodes, layer) {
				return
			}
		}
		each(g.After, 0)
	}
}

// Of returns the layers of a kind.
func (g *Graph) Of(kind int) []int {
	var out []int
	for layer, k := range g.Layers {
		if k == kind {
			out = append(out, layer)
		}
	}
	return out
}
