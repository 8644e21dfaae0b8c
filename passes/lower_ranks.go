package passes

import "amkc/ir"

// This file lowers what ranks exchange. A product whose columns are dealt to ranks makes a sum on each of them. Each
// pushes its own to all, and the SM that owns a row of the residual adds those of all ranks up, in pairs, on every rank
// alike. A head whose rows are dealt leaves the best of its logits on each rank, and all choose among these.

// pushes reports whether a linear has some of the columns of its matrix on each rank.
func (l *lowerer) pushes(n *ir.GraphNode) bool { return l.ranks > 1 && l.shared(n.Inputs[0]) }

// push declares the sums of all ranks, and returns the view of those that a task of one makes.
func (l *lowerer) push(n *ir.GraphNode, rows int) ir.Operand {
	name := l.named(n.Name) + ".sums"
	l.buffer(name, ir.Activation, ir.F32, ir.PeerScratch, l.ranks, rows)
	l.pushed[n.Name] = true
	return view(name, ir.Index(rank), task)
}

// sumOfRanks adds up the sums of all ranks.
func (l *lowerer) sumOfRanks(sums string) ir.Op {
	op := ir.Op{Code: ir.ALLREDUCE, Out: []ir.Operand{temp("%sum")},
		Params: []ir.Param{ir.IntParam("pairs", ir.Int(1))}}
	for r := range l.ranks {
		op.In = append(op.In, view(sums, ir.Index(ir.Int(r)), task))
	}
	return op
}

// vocab is how many logits a rank makes.
func (l *lowerer) vocab() int { return l.m.Vocab / l.ranks }

// rowsOf is the rows of its matrix that a task of a linear takes: those of its span, or where all ranks have the matrix
// as a whole, because tokens are looked up in it, those of its rank.
func (l *lowerer) rowsOf(n *ir.GraphNode) ir.Range {
	if rows := n.Shape[0]; rows < n.Weights[0].Shape[0] {
		first := rank.Mul(rows)
		return ir.Span(first.Add(spanA), first.Add(spanB))
	}
	return task
}

// choose lowers the choice of a token among logits.
func (l *lowerer) choose(n *ir.GraphNode, in string) {
	at := ir.IntParam("pos", l.tokens.position())
	op := ir.Op{Code: ir.SAMPLE, Out: []ir.Operand{view(next, upTo(l.tokens.NumTokens()))},
		In: []ir.Operand{l.tokens.view(in, upTo(l.vocab())), l.settings()}, Params: []ir.Param{at}}
	if l.ranks == 1 {
		l.stage(n, next, whole(1), op)
		return
	}
	var best, all []ir.Operand
	l.buffer(bestValue, ir.Activation, ir.F32, ir.PeerScratch, l.ranks)
	l.buffer(bestIndex, ir.Activation, ir.I32, ir.PeerScratch, l.ranks)
	for _, name := range []string{bestValue, bestIndex} {
		best, all = append(best, view(name, ir.Index(rank))), append(all, view(name, upTo(l.ranks)))
	}
	own := op
	own.Out, own.Params = best, []ir.Param{ir.IntParam("partial", ir.Int(1)),
		ir.IntParam("first", rank.Mul(l.vocab())), at}
	l.stage(n, bestCounter, single(), own)
	op.In = append(all, op.In[1])
	l.ending(sampleRole, bestCounter, next, op)
}
