package cli

import (
	"bytes"
	"fmt"
	"strings"

	"amkc/ir"
)

// graphText prints the operator graph, one node a line. The graph has no form that is read back: the first program is
// made by the pass after import.
func graphText(g *ir.Graph) []byte {
	var b bytes.Buffer
	m := &g.Model
	fmt.Fprintf(&b, "graph %s arch=%s dtype=%s layers=%d\n", m.Name, m.Architecture, m.DType, m.Layers)
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "  %s %v = %s(%s)", n.Name, n.Shape, n.Op, strings.Join(n.Inputs, ", "))
		if len(n.Weights) > 0 {
			fmt.Fprintf(&b, " weights %s", strings.Join(n.Weights, ", "))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
