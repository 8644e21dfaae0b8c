package passes

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// perHead is one task for each KV head of each sequence: the cache is stored head by head, and so is attention.
func (l *lowerer) perHead() ir.Dist {
	return ir.Dist{Kind: ir.Tiled, Extent: l.tokens.NumSequences() * l.facts.KVHeads, Grain: 1}
}

// windowOf is how many positions attention sees, its own among them; 0: all that there are.
func windowOf(n *ir.GraphNode, m *ir.Model) int {
	if window := n.IntOr("window", 0); window < m.MaxSeq {
		return window
	}
	return 0
}

// hasWindows reports whether some layers see fewer positions than there are.
func hasWindows(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Kinds, func(kind ir.LayerKind) bool {
		return slices.ContainsFunc(kind.Nodes, func(n ir.GraphNode) bool {
			return n.Op == "attention" && windowOf(&n, &g.Model) > 0
		})
	})
}

// attention is that of one KV head of one sequence, the task's: its group of query heads over the rows of the cache
// below the sequence's position, those in the window if there is one, and the rows of this pass as operands. Each token
// of a pass has a window of its own, which the view does not say.
func (l *lowerer) attention(n *ir.GraphNode, out, kv, q, k, v string) ir.Op {
	hd, group := l.facts.HeadDim, l.facts.Group()
	s := l.tokens.sequence(spanA, l.facts.KVHeads)
	seen := ir.Span(ir.Int(0), s.pos)
	op := ir.Op{Code: ir.ATTENTION, Out: []ir.Operand{s.view(out, at(s.head, group*hd, 0))},
		Params: []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("n_heads", ir.Int(group)),
			ir.IntParam("n_kv_heads", ir.Int(1)), ir.FloatParam("scale", n.FloatOr("scale", 1)),
			ir.IntParam("row", s.position())}}
	if bound := n.FloatOr("cap", 0); bound > 0 {
		op.Params = append(op.Params, ir.FloatParam("cap", bound))
	}
	if window := windowOf(n, l.m); window > 0 {
		seen.Lo = ir.Int(0).Max(s.pos.Sub(ir.Int(window - 1)))
		if s.NumRows() > 1 {
			end := slices.IndexFunc(op.Params, func(q ir.Param) bool { return q.Key == "scale" }) + 1
			op.Params = slices.Insert(op.Params, end, ir.IntParam("window", ir.Int(window)))
		}
	}
	op.In = []ir.Operand{s.view(q, at(s.head, group*hd, 0)), s.cache(kv, seen, 0, hd), s.cache(kv, seen, 1, hd),
		s.view(k, at(s.head, hd, 0)), s.view(v, at(s.head, hd, 0))}
	if len(n.Weights) > 0 {
		op.In = append(op.In, view(l.weights(l.named("sinks"), n.Weights[0]), at(s.head, group, 0)))
	}
	return op
}

// append puts k or v, whichever attention has the value for, into the cache.
func (l *lowerer) append(n *ir.GraphNode, in string) error {
	for i := range l.nodes {
		if a := &l.nodes[i]; a.Op == "attention" {
			isV := slices.Index(a.Inputs, n.Inputs[0]) - 1
			if isV != 0 && isV != 1 {
				break
			}
			s := l.tokens.sequence(spanA, l.facts.KVHeads)
			l.stage(n, stepCounter, l.perHead(), ir.Op{Code: ir.KVAppend,
				Out: []ir.Operand{s.cache(l.named("kv"), s.appended(), isV, l.facts.HeadDim)},
				In:  []ir.Operand{s.view(in, at(s.head, l.facts.HeadDim, 0))}})
			return nil
		}
	}
	return diag.Errorf(codeOrder, "pass lower", "node %s appends %s; want k or v of an attention", l.named(n.Name),
		n.Inputs[0])
}
