package importers

import (
	"slices"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
)

// mergeAdapters applies the adapters that the checkpoint was opened with. It refuses those that change what is not
// compiled, or one of two matrices that are tied: then the other would have to be known too.
func (m *importer) mergeAdapters(g *ir.Graph) {
	changed, err := m.src.Weights.Merge(transposedIn(g))
	if err != nil {
		m.diags.Add(asDiagnostic(err))
		return
	}
	for _, name := range changed {
		switch {
		case g.Model.Tied && (name == m.names.embedding() || name == m.names.logits()):
			m.diags.Add(diag.Errorf(checkpoint.NotFitting, "tensor "+name, "an adapter changes it, and it is the "+
				"matrix of the embedding and of the logits (tie_word_embeddings); accepted: adapters of other "+
				"modules, or a model that PEFT has merged and saved"))
		case slices.ContainsFunc(m.leftOut, func(part string) bool { return strings.HasPrefix(name, part) }):
			m.diags.Add(diag.Errorf(checkpoint.NotFitting, "tensor "+name, "an adapter changes it, and it is of a "+
				"part of the model that is not compiled; accepted: adapters of the language model"))
		}
	}
}

// transposedIn are the matrices that checkpoints have with their columns as rows.
func transposedIn(g *ir.Graph) map[string]bool {
	keys := map[string]bool{}
	add := func(nodes []ir.GraphNode, layer int) {
		for i := range nodes {
			for j := range nodes[i].Weights {
				for _, w := range nodes[i].Weights[j].Tensors() {
					key, err := ir.ResolveKey(w.Key, layer)
					for k := range w.Chain {
						if err == nil && w.Chain[k].Spec().Transposes {
							keys[key] = true
						}
					}
				}
			}
		}
	}
	add(g.Before, 0)
	for layer, kind := range g.Layers {
		add(g.Kinds[kind].Nodes, layer)
	}
	add(g.After, 0)
	return keys
}
