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

// partsOf are the ops that add up the parts of a branch, one after another, and what they make: the branch itself,
// where it is whole.
func partsOf(s *ir.Stage, rows int) (sums []ir.Op, branch ir.Operand) {
	in := buf(s.Ops[0].In, 0)
	n := sumsOfParts(s)
	branch = view(in, upTo(rows))
	for k := range n {
		sum := view(buf(s.Ops[k].Out, 0))
		sums = append(sums, ir.Op{Code: ir.ADD, Out: []ir.Operand{sum},
			In: []ir.Operand{branch, view(in, block(ir.Int(k+1), rows, 0))}})
		branch = sum
	}
	return sums, branch
}
