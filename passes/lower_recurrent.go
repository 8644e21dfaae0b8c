package passes

import "amkc/ir"

// This file lowers layers that have something else in place of attention, and what they keep from step to step.

// convChannels is how many channels a task of a convolution has at most.
const convChannels = 64

// shortConv is a causal convolution of each channel over the last positions, of a vector, or of the product of two. The
// rows of the positions before those of the pass are in a cache, of float32: what a pass makes of its own rows is what
// later ones make of them. The result may be multiplied by a third vector.
func (l *lowerer) shortConv(n *ir.GraphNode) {
	size, taps := n.Shape[0], n.IntOr("taps", 1)
	channels := commonDivisor(size, convChannels)
	groups := size / channels
	out := l.scratch(l.named(n.Name), l.m.Activations, size)
	past := l.named("conv_rows")
	l.declare(ir.Buffer{Name: past, Count: len(l.g.Layers), Kind: ir.KVCache, DType: ir.F32, Space: ir.HBM,
		Shape: l.tokens.caches([]int{groups, l.m.MaxSeq, 1, channels})})
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

// commonDivisor is the largest number that divides both.
func commonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
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
