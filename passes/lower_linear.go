package passes

import (
	"slices"

	"amkc/ir"
	"amkc/knobs"
)

// norm is of the whole vector at once, or head by head. One of all queries, or of all keys, is attention's. The product
// that reads another computes it, separately in every task. One that others read, such as a norm after a branch, is a
// separate task. The norm before the head is computed again for the host: the last hidden state.
func (l *lowerer) norm(n *ir.GraphNode, code ir.Opcode, in string) {
	size := n.Shape[0]
	dist, dtype := whole(1), ir.F32
	switch {
	case normsHeads(n):
		dist = whole(size)
	case l.exchanged[n.Name]:
		dist, dtype = single(), l.m.Activations
	}
	operands := []ir.Operand{l.tokens.view(in, upTo(size))}
	for k, w := range n.Weights {
		name := l.weights(l.named(n.Name)+[]string{".weight", ".bias"}[k], w, l.order(n)...)
		operands = append(operands, view(name, upTo(w.Shape[0])))
	}
	if l.rotated[n.Name] && !normsHeads(n) {
		operands = append(operands, operands[0]) // attention takes some heads of it, and the mean of all
	}
	if l.chosen != "" {
		l.ending(hiddenRole, in, hidden, ir.Op{Code: code, Out: []ir.Operand{l.tokens.view(hidden, upTo(size))},
			In: slices.Clone(operands), Params: n.Params})
	}
	out := l.scratch(l.named(n.Name), dtype, size)
	l.value[n.Name] = out
	l.stage(n, out, dist, ir.Op{Code: code, Out: []ir.Operand{l.tokens.view(out, upTo(size))}, In: operands,
		Params: n.Params})
}

func (l *lowerer) linear(n *ir.GraphNode, in string) {
	rows, cols := n.Shape[0], n.Weights[0].Shape[1]
	order := l.order(n)
	dtype := ir.F32
	if l.exchanged[n.Name] {
		dtype = l.m.Activations
	}
	w := l.weights(l.named(n.Name)+".weight", n.Weights[0], order...)
	out := l.named(n.Name)
	if b := l.buffers.Find(out, 0); b != nil && b.DType != dtype { // layers of another kind rotate it before
		out += ".exchanged"
	}
	result := l.tokens.view(out, task)
	switch {
	case n.Name == l.chosen:
		out = logits
		result = l.tokens.view(out, task)
	case l.pushes(n):
		result = l.push(n, rows)
		out = result.Buf
	default:
		l.scratch(out, dtype, rows)
	}
	l.value[n.Name] = out
	product := ir.Op{Code: l.tokens.product(), Out: []ir.Operand{result},
		In: []ir.Operand{l.tokens.view(in, upTo(cols)), view(w, l.rowsOf(n), upTo(cols))}}
	if parts := knobs.Parts.Of(l.config) / l.ranks; parts > 1 && l.shared(n.Inputs[0]) {
		product.Params = []ir.Param{ir.IntParam("parts", ir.Int(parts))}
	}
	if len(n.Weights) == 1 {
		l.stage(n, out, ofRows(rows), product)
		return
	}
	// The elements of a bias are in the order of the matrix's rows.
	bias := l.weights(l.named(n.Name)+".bias", n.Weights[1], order...)
	product.Out = []ir.Operand{temp("%y")}
	l.stage(n, out, ofRows(rows), product, ir.Op{Code: ir.ADD, Out: []ir.Operand{l.tokens.view(out, task)},
		In: []ir.Operand{temp("%y"), view(bias, task)}})
}

// shared reports whether GPUs that share a layer would have an equal part of a value each: heads that attend, or
// elements of an MLP.
func (l *lowerer) shared(name string) bool {
	return slices.ContainsFunc(l.nodes, func(n ir.GraphNode) bool {
		return n.Name == name && (n.Op == "attention" || ir.FinishedBy(n.Op) != nil)
	})
}
