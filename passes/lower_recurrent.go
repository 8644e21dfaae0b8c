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

// deltaRule is a gated delta rule: of each head, a state that decays, and in which the value of a key is replaced.
// Queries, keys and values are what a convolution makes of the last positions. What a query finds is normalised and
// multiplied by a gate. Keys and queries are shared by neighbouring heads, and each of these convolves them for itself.
func (l *lowerer) deltaRule(n *ir.GraphNode) {
	f := l.facts
	heads, keys, values := f.StateHeads, f.StateKeys, f.StateValues
	out := l.scratch(l.named(n.Name), l.m.Activations, n.Shape[0])
	l.value[n.Name] = out
	s := l.tokens.sequence(spanA, heads)
	rows := max(l.tokens.NumRows(), l.most)
	kept := func(name string, shape ...int) func(parts ...ir.Range) ir.Operand {
		l.declare(ir.Buffer{Name: l.named(name), Count: len(l.g.Layers), Kind: ir.Recurrent, DType: ir.F32,
			Space: ir.HBM, Shape: l.tokens.caches(append([]int{heads}, shape...))})
		return func(parts ...ir.Range) ir.Operand {
			dims := append([]ir.Range{ir.Index(s.head)}, parts...)
			if s.NumSequences() > 1 {
				dims = append([]ir.Range{ir.Index(s.number)}, dims...)
			}
			return view(l.named(name), dims...)
		}
	}
	state, pending := kept("state", keys, values), kept("state_pending", rows, 2+keys+values)
	before := f.Taps - 1 + rows // positions
	past := kept("state_inputs", before, 2*keys+values)
	weight := func(i int, part ir.Range) ir.Operand {
		names := []string{"state_conv.weight", "decay_log", "decay_bias", "state_norm.weight"}
		return view(l.weights(l.named(names[i]), n.Weights[i]), part)
	}
	in := func(i int, part ir.Range) ir.Operand { return s.view(l.value[n.Inputs[i]], part) }
	var ops []ir.Op
	add := func(code ir.Opcode, result string, params []ir.Param, operands ...ir.Operand) ir.Operand {
		ops = append(ops, ir.Op{Code: code, Out: []ir.Operand{temp(result)}, In: operands, Params: params})
		return temp(result)
	}
	position := ir.IntParam("pos", s.position())
	convolved := func(name string, block ir.Expr, size, first, own int) ir.Operand {
		rows := past(upTo(before), ir.Span(ir.Int(own), ir.Int(own+size)))
		y := add(ir.StateConv, "%c"+name, []ir.Param{position, ir.IntParam("taps", ir.Int(f.Taps))},
			in(0, at(block, size, first)), rows, weight(0, at(block, size*f.Taps, first*f.Taps)))
		last := &ops[len(ops)-1]
		last.Out = append(last.Out, rows)
		return add(ir.SILU, "%s"+name, nil, y)
	}
	unit := func(scale float64) []ir.Param {
		return []ir.Param{ir.FloatParam("eps", 1e-6), ir.IntParam("head_dim", ir.Int(keys)),
			ir.FloatParam("scale", scale)}
	}
	keyHead, keyHeads := s.head.Div(heads/f.StateKeyHeads), f.StateKeyHeads
	q := add(ir.L2NORM, "%q", unit(1/math.Sqrt(float64(keys))), convolved("q", keyHead, keys, 0, 0))
	k := add(ir.L2NORM, "%k", unit(1), convolved("k", keyHead, keys, keyHeads*keys, keys))
	v := convolved("v", s.head, values, 2*keyHeads*keys, 2*keys)
	decay := add(ir.DECAY, "%decay", nil, in(1, ir.Index(s.head)), weight(1, ir.Index(s.head)),
		weight(2, ir.Index(s.head)))
	beta := add(ir.SIGMOID, "%beta", nil, in(2, ir.Index(s.head)))
	was, left := state(upTo(keys), upTo(values)), pending(upTo(rows), upTo(2+keys+values))
	o := add(ir.RECURRENCE, "%o", []ir.Param{position, ir.IntParam("delta", ir.Int(1))}, q, k, v, decay, beta, was,
		left)
	last := &ops[len(ops)-1]
	last.Out = append(last.Out, was, left)
	normed := add(ir.RMSNORM, "%n", []ir.Param{ir.FloatParam("eps", n.FloatOr("eps", 0)),
		ir.IntParam("head_dim", ir.Int(values))}, o, weight(3, upTo(values)))
	gate := add(ir.SILU, "%gate", nil, in(3, at(s.head, values, 0)))
	ops = append(ops, ir.Op{Code: ir.MUL, Out: []ir.Operand{s.view(out, at(s.head, values, 0))},
		In: []ir.Operand{normed, gate}})
	l.stage(n, out, ir.Dist{Kind: ir.Tiled, Extent: l.tokens.NumSequences() * heads, Grain: 1}, ops...)
}
