package cli

import (
	"bytes"
	"fmt"
	"strings"

	"amkc/ir"
)

// graphText prints the operator graph, one node per line, and the layers of each kind once. The graph has no form that
// is read back: the first program is made by the pass after import.
func graphText(g *ir.Graph) []byte {
	var b bytes.Buffer
	m := &g.Model
	fmt.Fprintf(&b, "graph %s arch=%s dtype=%s layers=%d\n", m.Name, m.Architecture, m.DTypes, m.Layers)
	print := func(indent string, nodes []ir.GraphNode) {
		for _, n := range nodes {
			fmt.Fprintf(&b, "%s%s %v = %s(%s)", indent, n.Name, n.Shape, n.Op, strings.Join(n.Inputs, ", "))
			for i, w := range n.Weights {
				fmt.Fprintf(&b, "%s %s", []string{" weights", ","}[min(i, 1)], w)
				if w.Storage != nil {
					fmt.Fprintf(&b, " as %s %s", w.Storage.DType, w.Storage.Layout())
				}
			}
			for _, p := range n.Params {
				fmt.Fprintf(&b, " %s", p)
			}
			b.WriteByte('\n')
		}
	}
	print("  ", g.Before)
	for k, kind := range g.Kinds {
		fmt.Fprintf(&b, "  layers %s of kind %s\n", spellLayers(g.Of(k)), kind.Name)
		print("    ", kind.Nodes)
	}
	print("  ", g.After)
	return b.Bytes()
}

// spellLayers prints the numbers of layers in rising order, those that follow one another as first..last.
func spellLayers(layers []int) string {
	var spelt []string
	for at := 0; at < len(layers); {
		end := at
		for end+1 < len(layers) && layers[end+1] == layers[end]+1 {
			end++
		}
		text := fmt.Sprint(layers[at])
		if end > at {
			text = fmt.Sprintf("%d..%d", layers[at], layers[end])
		}
		spelt, at = append(spelt, text), end+1
	}
	return strings.Join(spelt, ", ")
}
