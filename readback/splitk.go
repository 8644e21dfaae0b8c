package readback

// checkSplit holds a stage whose columns are cut into parts to the tiles of its matrix: the kernel takes the parts of a
// tile to lie side by side, in whole blocks, and each to have all rows.
func (b *builder) checkSplit(d *descriptor) {
	for _, c := range b.config.order {
		w, known := b.weight(c.name)
		if w = b.stored(w, d.kind); !known || w.Name != d.Matrix {
			continue
		}
		parts := d.SplitK * d.Added
		if len(w.Shape) != 2 {
			b.schedule.fail(d.at, "struct %s has columns in %d parts of %s, which is not a matrix; want those of one",
				d.scope.name, parts, w.Name)
		} else if d.SplitK*w.Shape[0] != d.Rows || parts*d.Columns != w.Shape[1] ||
			w.Shape[0]%8 != 0 || d.Columns%w.Format().Geometry().Columns != 0 {
			b.schedule.fail(d.at, "struct %s has %d rows and %d columns in %d parts; want all of the %d by %d of %s, "+
				"and parts of whole blocks of the matrix", d.scope.name, d.Rows, d.Columns, parts, w.Shape[0],
				w.Shape[1], w.Name)
		}
	}
}

// partsHandedOver is how many parts the vector of a product is published in.
func (b *builder) partsHandedOver(constant string) int {
	for _, v := range vectors {
		for _, d := range b.stages {
			if v.constant == constant && d.Out == v.Name && d.SplitK > 1 {
				return d.SplitK
			}
		}
	}
	return 1
}
