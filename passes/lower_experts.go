package passes

import (
	"slices"

	"amkc/ir"
)

// This file lowers layers with experts. What a router chooses are two values: the numbers of the experts of each token,
// and their weights. The matrices of all experts of a layer are one buffer of three dimensions.

// idsOf is the buffer of the numbers that a router chooses, by that of their weights.
func idsOf(route string) string { return route + ".ids" }

// routed are the numbers and the weights that a router has chosen for each token.
func (l *lowerer) routed(route string, k int) (ids, weights ir.Operand) {
	return l.tokens.view(idsOf(route), upTo(k)), l.tokens.view(route, upTo(k))
}

// route chooses experts by their scores, and weighs them: by a softmax over all scores, or over those of the chosen, or
// by sigmoids; the weights may be made to add up to 1, and be multiplied. A bias counts for the choice alone.
func (l *lowerer) route(n *ir.GraphNode, scores string) {
	all, k := l.facts.Experts, n.Shape[0]
	out := l.scratch(l.named(n.Name), ir.F32, k)
	l.scratch(idsOf(out), ir.I32, k)
	l.value[n.Name] = out
	ids, weights := l.routed(out, k)
	x := l.tokens.view(scores, upTo(all))
	var ops []ir.Op
	add := func(code ir.Opcode, result string, in ir.Operand, params ...ir.Param) {
		ops = append(ops, ir.Op{Code: code, Out: []ir.Operand{temp(result)}, In: []ir.Operand{in}, Params: params})
	}
	given := func(keys ...string) (params []ir.Param) {
		return slices.DeleteFunc(slices.Clone(n.Params), func(p ir.Param) bool { return !slices.Contains(keys, p.Key) })
	}
	chosenFirst := n.IntOr("chosen_first", 0) == 1
	switch {
	case n.IntOr("sigmoid", 0) == 1:
		add(ir.SIGMOID, "%p", x)
		x = temp("%p")
	case !chosenFirst && n.FloatOr("jitter", 0) == 0:
		add(ir.SOFTMAX, "%p", x)
		x = temp("%p")
	}
	params := append([]ir.Param{ir.IntParam("k", ir.Int(k))}, given("groups", "top_groups", "jitter")...)
	add(ir.TOPK, "%best", x, params...)
	choose := &ops[len(ops)-1]
	choose.Out = append(choose.Out, ids)
	if len(n.Weights) > 0 {
		bias := l.weights(l.named("choosing.weight"), n.Weights[0])
		choose.In = append(choose.In, view(bias, upTo(all)))
	}
	if chosenFirst {
		add(ir.SOFTMAX, "%shares", temp("%best"))
	}
	if n.IntOr("renormalise", 0) == 1 {
		add(ir.RENORMALISE, "%shares", temp("%best"), given("extra", "least")...)
	}
	if n.FloatOr("scale", 0) != 0 {
		add(ir.MUL, "%scaled", ops[len(ops)-1].Out[0], given("scale")...)
	}
	ops[len(ops)-1].Out[0] = weights
	if l.facts.SharedGates > 0 {
		add(ir.SIGMOID, "", l.tokens.view(scores, ir.Span(ir.Int(all), ir.Int(l.facts.Scores()))))
		gate := l.scratch(l.named(sharedGate), ir.F32, l.facts.SharedGates)
		ops[len(ops)-1].Out[0] = l.tokens.view(gate, upTo(l.facts.SharedGates))
	}
	l.stage(n, out, single(), ops...)
}

// sharedGate is the sigmoid that the router makes for the expert that every token has.
const sharedGate = "shared_gate"

// selected is the product of a vector with the matrices that are chosen, of which the task takes some rows.
func (l *lowerer) selected(n *ir.GraphNode, x ir.Operand, matrix, bias ir.Range, ids, weights ir.Operand) ir.Op {
	shape := n.Weights[0].Shape
	w := l.weights(l.named(n.Name)+".weight", n.Weights[0])
	op := ir.Op{Code: ir.SELECTED, In: []ir.Operand{x, view(w, upTo(shape[0]), matrix, upTo(shape[2])), ids}}
	if len(n.Weights) > 1 {
		op.In = append(op.In, view(l.weights(l.named(n.Name)+".bias", n.Weights[1]), upTo(shape[0]), bias))
		if len(weights.Buf) > 0 {
			op.In = append(op.In, weights)
		}
	}
	return op
}

// expertsUp is the first half of the chosen experts, one after another: rows of gate and up in turn, the activation,
// and the weight of the expert, by which it is multiplied before it is rounded.
func (l *lowerer) expertsUp(n *ir.GraphNode, in, route string) {
	k, wide := l.facts.PerToken, l.facts.Intermediate
	out := l.scratch(l.named("experts_act"), l.m.Activations, n.Shape[0])
	l.value[n.Name] = out
	ids, weights := l.routed(route, k)
	rows := upTo(2 * wide)
	product := l.selected(n, l.tokens.view(in, upTo(l.m.Hidden)), rows, rows, ids, ir.Operand{})
	product.Out = []ir.Operand{temp("%y")}
	product.Params = []ir.Param{ir.IntParam("first_row", spanA), ir.IntParam("rows", spanB.Sub(spanA))}
	gate := ir.Op{Code: ir.SiluMul, Out: []ir.Operand{temp("%act")}, In: []ir.Operand{temp("%y")}, Params: n.Params}
	if n.FloatOr("cap", 0) > 0 {
		gate.Code = ir.ClampedSiluMul
	}
	half := ir.Span(spanA.Div(2), spanB.Div(2))
	l.stage(n, out, whole(2*n.Shape[0]), product, gate, ir.Op{Code: ir.ScaleBlocks,
		Out: []ir.Operand{l.tokens.view(out, half)}, In: []ir.Operand{temp("%act"), weights},
		Params: []ir.Param{ir.IntParam("first", spanA.Div(2)), ir.IntParam("block", ir.Int(wide))}})
}

// expertsDown is the second half: a product for each chosen expert, added up in the order in which they are chosen.
func (l *lowerer) expertsDown(n *ir.GraphNode, in, route string) {
	k, dtype := l.facts.PerToken, ir.F32
	if l.exchanged[n.Name] { // by the norm after the branch
		dtype = l.m.Activations
	}
	out := l.scratch(l.named(n.Name), dtype, n.Shape[0])
	l.value[n.Name] = out
	ids, weights := l.routed(route, k)
	product := l.selected(n, l.tokens.view(in, upTo(k*l.facts.Intermediate)), task, task, ids, weights)
	product.Out = []ir.Operand{temp("%each")}
	l.stage(n, out, whole(n.Shape[0]), product, ir.Op{Code: ir.SumRows, Out: []ir.Operand{l.tokens.view(out, task)},
		In: []ir.Operand{temp("%each")}, Params: []ir.Param{ir.IntParam("parts", ir.Int(k))}})
}

// gatedBy multiplies what an expert makes that every token has by its gate.
func (l *lowerer) gatedBy(n *ir.GraphNode, in string) {
	out := l.scratch(l.named(n.Name), ir.F32, n.Shape[0])
	l.value[n.Name] = out
	l.stage(n, out, whole(n.Shape[0]), ir.Op{Code: ir.ScaleBlocks, Out: []ir.Operand{l.tokens.view(out, task)},
		In:     []ir.Operand{l.tokens.view(in, task), l.tokens.view(l.named(sharedGate), upTo(l.facts.SharedGates))},
		Params: []ir.Param{ir.IntParam("first", spanA), ir.IntParam("block", ir.Int(n.Shape[0]))}})
}
