package refvm

import ops "amkc/ir/op"

// What layers compute that keep something else than keys and values from step to step.
var recurrent = kernelTable{
	ops.ShortConv: shortConv,
	ops.SILU:      pointwise(silu),
}

// shortConv is a causal convolution of each column by taps of its own. The rows before those of the pass are in a
// cache, where the passes before have put them.
func shortConv(w *worker, o *op) error {
	x, n, taps := w.floats(&o.in[0]), w.last(&o.in[0]), o.src.IntAt("taps", 0, 0)
	by := w.floats(&o.in[2])
	if n == 0 || len(by)%n != 0 || len(by)/n != taps {
		return w.misfit(o, "has rows of %d elements and %d taps, want %d for each element", n, len(by), taps)
	}
	var bias []float32
	if len(o.in) > 3 {
		if bias = w.floats(&o.in[3]); len(bias) != n {
			return w.misfit(o, "has a bias of %d elements for rows of %d, want as many", len(bias), n)
		}
	}
	w.lists = w.lists[:0]
	past, err := w.cache(o, &o.in[1], &attended{batch: 1, kvHeads: 1, hd: n})
	if err != nil {
		return err
	}
	rows := make([][]float32, 0, len(past.rows)+len(x)/n)
	for r := range past.rows {
		rows = append(rows, w.row(&past, 0, r, 0).elements)
	}
	for at := 0; at < len(x); at += n {
		rows = append(rows, x[at:at+n])
	}
	out := w.alloc(len(x))
	clear(out)
	for b := range len(x) / n {
		own := len(past.rows) + b
		to := out[b*n : (b+1)*n]
		for t := max(0, taps-1-own); t < taps; t++ {
			from := rows[own-(taps-1)+t]
			for i := range to {
				to[i] += by[i*taps+t] * from[i]
			}
		}
		w.spend(taps * n)
		for i, f := range bias {
			to[i] += f
		}
	}
	return w.emit(o, out, n)
}
