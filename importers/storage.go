package importers

import (
	"reflect"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// Layers whose matrices are stored alike are of one kind: a kind whose layers differ in that becomes several. The
// importer of quantised checkpoints and pass quantise both store the matrices of layers here.

// MostKinds is the largest number of kinds of layers. The kernel has separate code for the stages of each.
const MostKinds = 16

// StoreLayers sets the storage of the matrix of every linear of a layer, and of its experts, to the result of of; nil
// means that of the model's weights.
func StoreLayers(g *ir.Graph, of func(layer int, n *ir.GraphNode) *ir.Storage) *diag.Diagnostic {
	type form struct {
		body     int // which kinds compute the same: the first of them
		storages []ir.Storage
	}
	old, bodies := g.Kinds, sameBodies(g.Kinds)
	var forms []form
	g.Kinds = nil
	for layer, from := range g.Layers {
		f := form{body: bodies[from]}
		kind := old[from]
		kind.Nodes = slices.Clone(kind.Nodes)
		for i := range kind.Nodes {
			n := &kind.Nodes[i]
			if !n.Streams() {
				continue
			}
			stored := ir.Storage{}
			n.Weights = slices.Clone(n.Weights)
			if n.Weights[0].Storage = of(layer, &old[from].Nodes[i]); n.Weights[0].Storage != nil {
				stored = *n.Weights[0].Storage
			}
			f.storages = append(f.storages, stored)
		}
		at := slices.IndexFunc(forms, func(have form) bool {
			return have.body == f.body && slices.Equal(have.storages, f.storages)
		})
		if at < 0 {
			at, forms, g.Kinds = len(forms), append(forms, f), append(g.Kinds, kind)
		}
		if g.Layers[layer] = at; len(forms) > MostKinds {
			return diag.Errorf(codeKinds, "layers", "are of more than %d kinds, by what they compute and how their "+
				"matrices are stored: layer %d is of another one than all before it; want at most %d kinds, each of "+
				"which has code of its own in the kernel", MostKinds, layer, MostKinds)
		}
	}
	return nil
}

// sameBodies returns for each kind the first one that is the same but for how its matrices are stored.
func sameBodies(kinds []ir.LayerKind) []int {
	plain := make([]ir.LayerKind, len(kinds))
	out := make([]int, len(kinds))
	for k, kind := range kinds {
		kind.Nodes = slices.Clone(kind.Nodes)
		for i := range kind.Nodes {
			if n := &kind.Nodes[i]; n.Streams() {
				n.Weights = slices.Clone(n.Weights)
				n.Weights[0].Storage = nil
			}
		}
		plain[k] = kind
		out[k] = slices.IndexFunc(plain[:k+1], func(have ir.LayerKind) bool {
			return have.Rope == kind.Rope && reflect.DeepEqual(have, kind)
		})
	}
	return out
}
