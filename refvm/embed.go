package refvm

import (
	"amkc/ir/diag"
	ops "amkc/ir/op"
)

var embedding = kernelTable{ops.EMBED: embed}

// embed looks up rows of a table: what a token id means to the model.
func embed(w *worker, o *op) error {
	ids, ints := w.bits(&o.in[0])
	table := &o.in[1]
	if table.st == nil {
		return w.misfit(o, "has a temporary as its table, want a view of a buffer")
	}
	rows := table.dims[0].n
	if rows == 0 {
		return w.misfit(o, "has a table without rows")
	}
	n := table.n / rows
	out := w.alloc(len(ids) * n)
	for i := range ids {
		id := integer(ids, ints, i)
		if id < 0 || id >= rows {
			return diag.Errorf(CodeValue, w.task.pos(), "token %d, the table has rows 0 to %d", id, rows-1)
		}
		row := table.pin(id)
		copy(out[i*n:], w.gather(&row))
	}
	if o.src.Has("scale") {
		out = w.times(out, float32(o.src.FloatOr("scale", 1)))
	}
	return w.emit(o, out, n)
}
