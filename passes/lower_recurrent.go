package passes

import (
	"math"

	"amkc/ir"
)

// This file lowers layers that have something else in place of attention, and what they keep from step to step.

// shortConv is a causal convolution of each channel over the last positions, of a vector, or of the product of two. The
// rows of the positions before those of the pass are in a cache, of float32: what a pass makes of its own rows is what
// later ones make of them. The result may be multiplied by a third vector.
func (l *lowerer) shortConv(n *ir.GraphNode) {
	taps, state := n.IntOr("taps", 1), l.facts.Convolved()
	size, channels, groups := n.Shape[0], state.Elements, state.Heads
	out := l.scratch(l.named(n.Name), l.m.Activations, size)
	past := l.named("conv_rows")
	l.declare(ir.Buffer{Name: past, Count: len(l.g.Layers), Kind: ir.KVCache,
		DType: state.Type(l.m.Cache), Space: ir.HBM, Shape: l.tokens.caches(state.Shape(l.m.MaxSeq))})
	s := l.tokens.sequence(spanA, groups)
	part := at(s.head, channels, 0)
	of := func(i int) ir.Operand { return s.view(l.value[n.Inputs[i]], part) }
	var ops []ir.Op
	add := func(code ir.Opcode, result string, in ...ir.Operand) ir.Operand {
		ops = append(ops, ir.Op{Code: code, Out: []ir.Operand{temp(result)}, In: in})
		return temp(result)
	}
	x := of(0)
	if len(n.Inputs) > 1 {
		x = add(ir.MUL, "%x", x, of(1))
	}
	seen := ir.Span(ir.Int(0).Max(s.pos.Sub(ir.Int(taps-1))), s.pos)
	in := []ir.Operand{x, s.cache(past, seen, 0, channels)}
	for k, w := range n.Weights {
		of := l.weights(l.named(n.Name)+[]string{".weight", ".bias"}[k], w)
		in = append(in, view(of, at(s.head, w.Shape[0]/groups, 0)))
	}
	y := add(ir.ShortConv, "%y", in...)
	ops[len(ops)-1].Params = []ir.Param{ir.IntParam("taps", ir.Int(taps))}
	if n.IntOr("silu", 0) == 1 {
		y = add(ir.SILU, "%silu", y)
	}
	if len(n.Inputs) > 2 {
		add(ir.MUL, "%gated", y, of(2))
	}
	ops[len(ops)-1].Out = []ir.Operand{s.view(out, part)}
	ops = append(ops, ir.Op{Code: ir.KVAppend, In: []ir.Operand{x},
		Out: []ir.Operand{s.cache(past, s.appended(), 0, channels)}})
	l.value[n.Name] = out
	l.stage(n, out, ir.Dist{Kind: ir.Tiled, Extent: l.tokens.NumSequences() * groups, Grain: 1}, ops...)
}

// gatedAttention multiplies what attention makes by the sigmoid of a gate.
func (l *lowerer) gatedAttention(n *ir.GraphNode, in, gate string) {
	out := l.scratch(l.named(n.Name), l.m.Activations, n.Shape[0])
	l.value[n.Name] = out
	l.stage(n, out, whole(n.Shape[0]),
		ir.Op{Code: ir.SIGMOID, Out: []ir.Operand{temp("%gate")}, In: []ir.Operand{l.tokens.view(gate, task)}},
		ir.Op{Code: ir.MUL, Out: []ir.Operand{l.tokens.view(out, task)},
			In: []ir.Operand{l.tokens.view(in, task), temp("%gate")}})
}

// deltaRule is a gated delta rule: of each head, a state that decays, and in which the value of a key is replaced. What
// it makes of a query is normalised and multiplied by a gate. Keys and queries are shared by neighbouring heads.
func (l *lowerer) deltaRule(n *ir.GraphNode) {
	heads, keyHeads := n.IntOr("heads", 1), n.IntOr("key_heads", 1)
	keys, values := n.IntOr("key_dim", 1), n.IntOr("value_dim", 1)
	out := l.scratch(l.named(n.Name), l.m.Activations, n.Shape[0])
	l.value[n.Name] = out
	kept := func(name string, shape ...int) string {
		l.declare(ir.Buffer{Name: l.named(name), Count: len(l.g.Layers), Kind: ir.Recurrent, DType: ir.F32,
			Space: ir.HBM, Shape: l.tokens.caches(append([]int{heads}, shape...))})
		return l.named(name)
	}
	state, pending := kept("state", keys, values), kept("pending", max(l.tokens.NumRows(), l.most), 2+keys+values)
	s := l.tokens.sequence(spanA, heads)
	own := func(buf string, rows, width int) ir.Operand {
		dims := []ir.Range{ir.Index(s.head), upTo(rows), upTo(width)}
		if s.NumSequences() > 1 {
			dims = append([]ir.Range{ir.Index(s.number)}, dims...)
		}
		return view(buf, dims...)
	}
	weight := func(i, from, to int) ir.Operand {
		name := l.weights(l.named([]string{"decay_log", "decay_bias", "state_norm.weight"}[i]), n.Weights[i])
		if from == to {
			return view(name, ir.Index(s.head))
		}
		return view(name, ir.Span(ir.Int(from), ir.Int(to)))
	}
	in := func(i int, part ir.Range) ir.Operand { return s.view(l.value[n.Inputs[i]], part) }
	var ops []ir.Op
	add := func(code ir.Opcode, result string, params []ir.Param, operands ...ir.Operand) ir.Operand {
		ops = append(ops, ir.Op{Code: code, Out: []ir.Operand{temp(result)}, In: operands, Params: params})
		return temp(result)
	}
	keyHead := s.head.Div(heads / keyHeads)
	unit := func(scale float64) []ir.Param {
		return []ir.Param{ir.FloatParam("eps", 1e-6), ir.IntParam("head_dim", ir.Int(keys)),
			ir.FloatParam("scale", scale)}
	}
	q := add(ir.L2NORM, "%q", unit(1/math.Sqrt(float64(keys))), in(0, at(keyHead, keys, 0)))
	k := add(ir.L2NORM, "%k", unit(1), in(0, at(keyHead, keys, keyHeads*keys)))
	decay := add(ir.DECAY, "%decay", nil, in(1, ir.Index(s.head)), weight(0, 0, 0), weight(1, 0, 0))
	beta := add(ir.SIGMOID, "%beta", nil, in(2, ir.Index(s.head)))
	was, left := own(state, keys, values), own(pending, max(l.tokens.NumRows(), l.most), 2+keys+values)
	o := add(ir.RECURRENCE, "%o", []ir.Param{ir.IntParam("pos", s.position()), ir.IntParam("delta", ir.Int(1))}, q, k,
		in(0, at(s.head, values, 2*keyHeads*keys)), decay, beta, was, left)
	last := &ops[len(ops)-1]
	last.Out = append(last.Out, was, left)
	normed := add(ir.RMSNORM, "%n", []ir.Param{ir.FloatParam("eps", n.FloatOr("eps", 0)),
		ir.IntParam("head_dim", ir.Int(values))}, o, weight(2, 0, values))
	gate := add(ir.SILU, "%gate", nil, in(3, at(s.head, values, 0)))
	ops = append(ops, ir.Op{Code: ir.MUL, Out: []ir.Operand{s.view(out, at(s.head, values, 0))},
		In: []ir.Operand{normed, gate}})
	l.stage(n, out, ir.Dist{Kind: ir.Tiled, Extent: l.tokens.NumSequences() * heads, Grain: 1}, ops...)
}
