package passes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Linears that read one vector stand together, also those that only one kind of layers stacks; the embedding does not
// count.
func TestStacks(t *testing.T) {
	linear := func(name, of string) ir.GraphNode {
		return ir.GraphNode{Name: name, Op: "linear", Inputs: []string{of}}
	}
	g := &ir.Graph{
		Before: []ir.GraphNode{{Name: "embed", Op: "embed"}},
		Kinds: []ir.LayerKind{
			{Nodes: []ir.GraphNode{linear("q", "norm"), linear("k", "norm"), {Name: "mix", Op: "add",
				Inputs: []string{"norm"}}, linear("up", "post"), linear("gate", "other"), linear("down", "act")}},
			{Nodes: []ir.GraphNode{linear("q", "norm"), linear("gate", "post"), linear("up", "post"),
				linear("v", "norm"), linear("side", "norm")}},
		},
		After: []ir.GraphNode{linear("head", "last")},
	}
	require.Equal(t, [][]string{{"q", "k", "v", "side"}, {"gate", "up"}, {"down"}, {"head"}}, Stacks(g))
	require.Empty(t, Stacks(&ir.Graph{}))
}
