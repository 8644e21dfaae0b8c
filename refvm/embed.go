package refvm

import (
	"amkc/ir/diag"
	ops "amkc/ir/op"
)

var embedding = kernelTable{ops.EMBED: embed}

// embed looks up rows of a table: what a token id means to the model. The id after the last row takes what the host
// has given for its place instead, as it is.
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
	var given []float32
	last := rows - 1
	if len(o.in) > 2 {
		given, last = w.floats(&o.in[2]), rows
		if len(given) != len(ids)*n {
			return w.misfit(o, "is given %d elements, want a row of %d for each of %d ids", len(given), n, len(ids))
		}
	}
	scale := float32(o.src.FloatOr("scale", 1))
	if w.vm.touched != nil && !table.st.buf.Kind.ReadOnly() {
		w.touchBox(&table.box) // any row: which one depends on values
	}
	out := w.alloc(len(ids) * n)
	for i := range ids {
		w.spend(n)
		to := out[i*n : (i+1)*n]
		switch id := integer(ids, ints, i); {
		case id < 0 || id > last:
			return diag.Errorf(CodeValue, w.task.pos(), "token %d, want one from 0 to %d", id, last)
		case id == rows:
			copy(to, given[i*n:])
		default:
			row := table.pin(id)
			copy(to, w.gather(&row))
			for k := range to {
				to[k] *= scale
			}
		}
	}
	return w.emit(o, out, n)
}
