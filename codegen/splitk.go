package codegen

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// splitK is how many parts the columns of a matrix stage are cut into, and the rows of one: the stage has the rows of
// all parts, one part after another.
func (b *builder) splitK(s *ir.Stage, at site) (parts, rows int) {
	matrix := b.matrix(s, at)
	if matrix == nil || len(matrix.Shape) != 2 || s.Dist.Extent%matrix.Shape[0] != 0 {
		return 1, s.Dist.Extent
	}
	return s.Dist.Extent / matrix.Shape[0], matrix.Shape[0]
}

// splitFields are the constants of a stage whose columns are cut into parts. Every SM has tiles of one part alone, and
// parts lie side by side in a tile.
func (b *builder) splitFields(s *ir.Stage, at site) ([]field, error) {
	parts, rows := b.splitK(s, at)
	if parts < 2 {
		return nil, nil
	}
	d, columns := &s.Dist, b.rangeExtent(op(s, ir.GEMV).In[1].Dims[1])
	whole := b.matrix(s, at).Shape[1]
	block := b.matrix(s, at).Format().Geometry().Columns
	if d.SMs%parts != 0 || rows%d.Grain != 0 || d.Empty || columns%block != 0 || columns*parts != whole {
		return nil, diag.Errorf(codeDist, "stage "+s.Name, "has %d parts of %d of %d columns and %d rows each, in "+
			"grains of %d over %d SMs; want as many SMs for each part, whole grains, and all columns in blocks of %d",
			parts, columns, whole, rows, d.Grain, d.SMs, block)
	}
	return []field{{"int", "kSplitK", itoa(parts), "parts of the columns; kRows are those of all"}}, nil
}

// sumsOfParts is how many ops at the beginning of a stage add up the parts of a branch.
func sumsOfParts(s *ir.Stage) int {
	n := 0
	for n+1 < len(s.Ops) && s.Ops[n].Code == ir.ADD {
		n++
	}
	return n
}

// branchParts is how many parts of a branch a stage adds up, which adds its norm to the residual. A stage that adds
// rows of it adds the parts up twice: those of its rows, and those of the whole branch for its norm.
func branchParts(s *ir.Stage) int {
	if len(op(s, ir.RMSNORM).In) == 3 {
		return 1 + sumsOfParts(s)/2
	}
	return 1 + sumsOfParts(s)
}

// partsOf are the ops that add up the parts of a range of a branch, one after another, and what they make: the range
// itself, where the branch is whole. They are those of a stage from one on, and hidden is the length of the branch.
func partsOf(s *ir.Stage, from int, of ir.Range, hidden int) (sums []ir.Op, branch ir.Operand) {
	in := buf(s.Ops[0].In, 0)
	branch = view(in, of)
	for k := 1; k < branchParts(s); k++ {
		sum := view(buf(s.Ops[from+k-1].Out, 0))
		before := ir.Int(k * hidden)
		sums = append(sums, ir.Op{Code: ir.ADD, Out: []ir.Operand{sum},
			In: []ir.Operand{branch, view(in, ir.Span(before.Add(of.Lo), before.Add(of.Hi)))}})
		branch = sum
	}
	return sums, branch
}
