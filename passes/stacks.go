package passes

import (
	"slices"

	"amkc/ir"
)

// Stacks are the roles of the matrices of a graph that may have a format of their own. Those that the kernel multiplies
// as one matrix stand together, since they have one format (see Quantise). They come in the order of the graph: those
// of layers, and then the head. An embedding is not among them: a step reads one row of it.
func Stacks(g *ir.Graph) [][]string {
	var all [][]string
	for _, kind := range g.Kinds {
		all = addStacks(all, kind.Nodes)
	}
	return addStacks(all, g.After)
}

// addStacks adds the linears of some nodes. What stands together in one kind of layers has one format in all of them.
func addStacks(all [][]string, nodes []ir.GraphNode) [][]string {
	read := map[string]string{} // by what it reads, the first role of a stack
	for i := range nodes {
		n := &nodes[i]
		if n.Op != "linear" {
			continue
		}
		own := slices.IndexFunc(all, func(of []string) bool { return slices.Contains(of, n.Name) })
		if own < 0 {
			own = len(all)
			all = append(all, []string{n.Name})
		}
		first, stacked := read[n.Inputs[0]]
		if !stacked {
			read[n.Inputs[0]] = n.Name
			continue
		}
		with := slices.IndexFunc(all, func(of []string) bool { return slices.Contains(of, first) })
		if with != own {
			all[with] = append(all[with], all[own]...)
			all = slices.Delete(all, own, own+1)
		}
	}
	return all
}
