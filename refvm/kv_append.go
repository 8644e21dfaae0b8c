package refvm

import "amkc/ir"

// kvAppend writes rows of the cache: those of the step, kept for the steps to come. If the rows are distributed, x has
// all of them, and those of other tasks are left out.
func kvAppend(w *worker, o *op) error {
	out := &o.out[0]
	if o.src.Has("first_row") && !o.src.Has("rows") {
		return w.misfit(o, noRows)
	}
	given, _ := w.bits(&o.in[0])
	from, n, last := 0, 0, w.last(&o.in[0])
	some := o.src.Has("rows")
	if some {
		from, n = o.src.IntAt("first_row", 0, 0), o.src.IntAt("rows", 0, 0)
		if from < 0 || n < 1 || last < 1 || n > len(given)/last-from {
			return w.misfit(o, "takes %d rows from row %d on, of %d elements; want rows that are there", n, from,
				len(given))
		}
	}
	if out.st != nil && out.n == 0 {
		return nil // the rows are another task's, but who waits for them polls them
	}
	scaled := out.st != nil && out.st.rows != nil
	if !scaled && !some && (out.st == nil || !out.dealt()) {
		return copyElements(w, o)
	}
	x := w.floats(&o.in[0])
	if scaled {
		x = w.exchanged(&o.in[0], out)
	}
	if some {
		x = x[from*last : (from+n)*last]
	}
	if out.st == nil || !out.dealt() {
		return w.emit(o, x, w.last(&o.in[0]))
	}
	if n := out.undealt(); n != len(x) {
		return w.misfit(o, "has %d elements, and the view of %s %d before it is distributed", len(x),
			out.st.buf.Name, n)
	}
	return w.emit(o, w.share(&out.box, x), w.last(&o.in[0]))
}

// share returns the elements of a distributed box, of those that it has before.
func (w *worker) share(b *box, x []float32) []float32 {
	mine := w.alloc(b.n)
	var idx [ir.MaxRank]int
	for i := range mine {
		w.spend(1)
		from := 0
		for d := range b.rank {
			s := &b.dims[d]
			from = from*s.before() + s.at(idx[d]) - s.lo
		}
		mine[i] = x[from]
		for d := b.rank - 1; d >= 0; d-- {
			if idx[d]++; idx[d] < b.dims[d].n {
				break
			}
			idx[d] = 0
		}
	}
	return mine
}
