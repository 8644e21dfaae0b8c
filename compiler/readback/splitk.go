package readback

import "amkc/ir"

// tiles are the rows and columns of the matrix that a task multiplies: of the part of the columns that its rows are of.
func (d *descriptor) tiles() (rows, columns ir.Range) {
	if d.splitK == 1 {
		return task, upTo(d.columns)
	}
	part := spanA.Div(d.rows / d.splitK)
	before := part.Mul(d.rows / d.splitK)
	return ir.Span(spanA.Sub(before), spanB.Sub(before)), piece(part, d.columns, 0)
}

// checkSplit holds a stage whose columns are cut into parts to the tiles of its matrix: the kernel takes the parts of a
// tile to lie side by side, in whole blocks, and each to have all rows.
func (b *builder) checkSplit(d *descriptor) {
	for _, c := range b.config.order {
		w, known := b.weight(c.name)
		if w = b.stored(w, d.kind); !known || w.Name != d.matrix {
			continue
		}
		if len(w.Shape) != 2 {
			b.schedule.fail(d.at, "struct %s has columns in %d parts of %s, which is no matrix; want those of one",
				d.scope.name, d.splitK, w.Name)
		} else if d.splitK*w.Shape[0] != d.rows || d.splitK*d.columns != w.Shape[1] ||
			w.Shape[0]%8 != 0 || d.columns%w.Format().Geometry().Columns != 0 {
			b.schedule.fail(d.at, "struct %s has %d rows and %d columns in %d parts; want all of the %d by %d of %s, "+
				"and parts of whole blocks of the matrix", d.scope.name, d.rows, d.columns, d.splitK, w.Shape[0],
				w.Shape[1], w.Name)
		}
	}
}

// partsOf takes a number of parts.
func (b *builder) partsOf(s *scope, name string) int {
	n := b.schedule.positive(s, name)
	if n > maxParts {
		b.schedule.wrong(s, name, "%d; want at most %d", n, maxParts)
		return 1
	}
	return n
}

// maxParts bounds the parts of a branch.
const maxParts = 64

// partsHandedOver is how many parts the vector of a product is handed over in.
func (b *builder) partsHandedOver(constant string) int {
	for _, v := range vectors {
		for _, d := range b.stages {
			if v.constant == constant && d.out == v.buffer && d.splitK > 1 {
				return d.splitK
			}
		}
	}
	return 1
}
