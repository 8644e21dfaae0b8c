package kernel

import "amkc/ir"

// AddSums is add_sums of ranks.cuh: an SM adds the sums of all ranks to its rows of the residual, and publishes the
// rows. What ranks push is a vector for each of them, one after another.
var AddSums = declare(&Body{
	Name:     "add_sums",
	Header:   "ranks",
	NoPrompt: true,
	Codes:    []string{"ALLREDUCE_SHARD ADD"},
	Keeps:    OwnRows,
	Fields:   []Field{rows, grain, rotation, rotationStep, tasks},
	Args:     []Arg{page(input), page(output)},
	Read: func(s *Stage, ops []ir.Op) {
		last := &ops[len(ops)-1]
		s.In, s.Residual, s.Out = name(ops[0].In, 0), name(last.In, 0), name(last.Out, 1)
		s.Temps = []string{name(ops[0].Out, 0)}
	},
	Temps: func(*Stage) []string { return []string{"%sum"} },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		sum := op(ir.ALLREDUCE, views(view(s.Temps[0])), nil, ir.IntParam("pairs", ir.Int(1)))
		for r := range f.NumRanks() {
			sum.In = append(sum.In, view(s.In, ir.Index(ir.Int(r)), TaskRows))
		}
		own := view(s.Residual, TaskRows)
		return []ir.Op{sum, op(ir.ADD, views(own, view(s.Out, TaskRows)), views(own, sum.Out[0]))}
	},
})

// NumRanks is how many GPUs run the kernel at once, each as one rank.
func (f *Facts) NumRanks() int { return max(1, f.Ranks) }

// RankRows are the rows of a task in what each rank pushes.
func RankRows(dims ir.Range) []ir.Range { return []ir.Range{ir.Index(rank), dims} }

// bestOfSM is where an SM leaves its best logit.
func (f *Facts) bestOfSM() ir.Range {
	if f.NumRanks() == 1 {
		return ownSM
	}
	return ir.Index(rank.Mul(f.SMs).Add(ir.Symbol(ir.OnSM)))
}

// allBest are the places of the SMs of all ranks.
func (f *Facts) allBest() ir.Range { return upTo(f.NumRanks() * f.SMs) }

// OwnVocab is how many logits a rank computes.
func (f *Facts) OwnVocab() int { return f.Vocab / f.NumRanks() }

// firstToken is the first token of the rows of a task.
func (f *Facts) firstToken() ir.Expr {
	if f.NumRanks() == 1 {
		return spanA
	}
	return rank.Mul(f.OwnVocab()).Add(spanA)
}

var rank = ir.Symbol(ir.OnRank)
