package refvm

import (
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	ops "amkc/ir/op"
)

// What layers compute that keep something else than keys and values from step to step.
var recurrent = kernelTable{
	ops.ShortConv:  shortConv,
	ops.SILU:       pointwise(silu),
	ops.L2NORM:     l2norm,
	ops.DECAY:      decay,
	ops.RECURRENCE: recurrence,
	ops.StateConv:  stateConv,
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
	out := w.convolved(rows, len(past.rows), n, by)
	for i := range out {
		if bias != nil {
			out[i] += bias[i%n]
		}
	}
	return w.emit(o, out, n)
}

// convolved are the sums for the rows of n elements after the first ones.
func (w *worker) convolved(rows [][]float32, first, n int, by []float32) []float32 {
	taps := len(by) / n
	out := w.alloc((len(rows) - first) * n)
	clear(out)
	for own := first; own < len(rows); own++ {
		to := out[(own-first)*n : (own-first+1)*n]
		for t := max(0, taps-1-own); t < taps; t++ {
			from := rows[own-(taps-1)+t]
			for i := range to {
				to[i] += by[i*taps+t] * from[i]
			}
		}
		w.spend(taps * n)
	}
	return out
}

// stateConv is shortConv with rows that a state keeps, each position's in turn.
func stateConv(w *worker, o *op) error {
	x, n, taps := w.floats(&o.in[0]), w.last(&o.in[0]), o.src.IntAt("taps", 0, 0)
	by, kept := w.floats(&o.in[2]), &o.in[1]
	if n == 0 || taps < 1 || len(by) != n*taps || len(x) == 0 {
		return w.misfit(o, "has rows of %d elements and %d taps, want %d for each element", n, len(by), taps)
	}
	if kept.st == nil || o.out[1].st != kept.st || fmt.Sprint(o.src.In[1].Dims) != fmt.Sprint(o.src.Out[1].Dims) {
		return w.misfit(o, "keeps output 2, which is not the view of input 2")
	}
	past := w.times(w.floats(kept), 1)
	count := len(past) / n
	if len(past)%n != 0 || w.last(kept) != n || count < taps-1+len(x)/n {
		return w.misfit(o, "keeps %d elements in rows of %d; want at least %d rows of %d", len(past), w.last(kept),
			taps-1+len(x)/n, n)
	}
	pos := w.ofRow(o, "pos", 0, 0)
	row := func(position int) []float32 { return past[position%count*n:][:n] }
	var rows [][]float32
	for p := max(0, pos-(taps-1)); p < pos; p++ {
		rows = append(rows, row(p))
	}
	first := len(rows)
	for b := range len(x) / n {
		copy(row(pos+b), x[b*n:])
		rows = append(rows, row(pos+b))
	}
	if err := w.put(o, &o.out[0], value{f: w.convolved(rows, first, n, by), last: n}); err != nil {
		return err
	}
	return w.put(o, &o.out[1], value{f: past, last: n})
}

// l2norm scales each head to a sum of squares of 1, and by a number.
func l2norm(w *worker, o *op) error {
	x, n, last := w.floats(&o.in[0]), o.src.IntAt("head_dim", 0, 0), w.last(&o.in[0])
	if n < 1 || last%n != 0 {
		return w.misfit(o, "has rows of %d elements, want whole heads of %d", last, n)
	}
	eps, scale := float32(o.src.FloatOr("eps", 0)), float32(o.src.FloatOr("scale", 0))
	out := w.alloc(len(x))
	for at := 0; at < len(x); at += n {
		head := x[at : at+n]
		by := scale * float32(1/math.Sqrt(float64(dot(head, head)+eps)))
		for i, f := range head {
			out[at+i] = f * by
		}
	}
	return w.emit(o, out, last)
}

// decay is what remains of a state after a step: exp(−exp(A)·softplus(a + bias)).
func decay(w *worker, o *op) error {
	x, a, bias := w.floats(&o.in[0]), w.floats(&o.in[1]), w.floats(&o.in[2])
	if len(a) == 0 || len(bias) != len(a) || len(x)%len(a) != 0 {
		return w.misfit(o, "has %d elements, %d of A and %d of the bias; want whole rows of as many", len(x), len(a),
			len(bias))
	}
	out := w.alloc(len(x))
	for i, f := range x {
		y := float64(f + bias[i%len(a)])
		softplus := float32(max(y, 0) + math.Log1p(math.Exp(-math.Abs(y))))
		out[i] = exp(-exp(a[i%len(a)]) * softplus)
	}
	return w.emit(o, out, len(a))
}

// A recurrent state is m rows of n elements. Pending has rows of the pass that left it, each the position after the
// row, its decay, k and u, for the pass that goes on to take.
type recurrentState struct {
	m, n    int
	s       []float32
	pending []float32
}

func (r *recurrentState) width() int { return 2 + r.m + r.n }

// decays and adds are what a row does to the state. A row of pending does the same, to the bit, as it did in its pass.
func (r *recurrentState) decays(by float32) {
	for i := range r.s {
		r.s[i] *= by
	}
}

func (r *recurrentState) adds(k, u []float32) {
	for i, f := range k {
		row := r.s[i*r.n : (i+1)*r.n]
		for j, g := range u {
			row[j] += float32(f * g)
		}
	}
}

// times is the state, transposed, times a vector.
func (r *recurrentState) times(to, x []float32) {
	clear(to)
	for i, f := range x {
		for j, g := range r.s[i*r.n : (i+1)*r.n] {
			to[j] += float32(f * g)
		}
	}
}

// begin takes the rows of pending that are before a position, at which the pass begins.
func (r *recurrentState) begin(pos int) (problem string) {
	if pos == 0 {
		clear(r.s)
		return ""
	}
	first, after := -1, -1 // the position that the state is of, and that after the last row
	for at := 0; at < len(r.pending); at += r.width() {
		row := r.pending[at : at+r.width()]
		next := int(row[0])
		if next < 1 {
			break
		}
		if first < 0 {
			first = next - 1
		}
		if after = next; next <= pos {
			r.decays(row[1])
			r.adds(row[2:2+r.m], row[2+r.m:])
		}
	}
	if first >= 0 && (pos < first || pos > after) {
		return fmt.Sprintf("begins at position %d, and the state is of positions %d to %d; go back to 0, and decode "+
			"from there", pos, first, after)
	}
	return ""
}

// recurrence steps a state for each row, and keeps what the next pass needs to begin before or after any of them.
func recurrence(w *worker, o *op) error {
	q, k, v := w.floats(&o.in[0]), w.floats(&o.in[1]), w.floats(&o.in[2])
	decays, betas := w.floats(&o.in[3]), w.floats(&o.in[4])
	r := recurrentState{m: w.last(&o.in[0]), n: w.last(&o.in[2])}
	rows := 0
	if r.m > 0 {
		rows = len(q) / r.m
	}
	switch state, pending := &o.in[5], &o.in[6]; {
	case r.m == 0 || r.n == 0 || rows == 0:
		return w.misfit(o, "has %d elements of q in rows of %d, and of v rows of %d; want at least one", len(q), r.m,
			r.n)
	case w.last(&o.in[1]) != r.m || len(k) != len(q) || len(v) != rows*r.n || len(decays) != rows ||
		len(betas) != rows:
		return w.misfit(o, "has %d rows of q, %d elements of k, %d of v, %d of decay and %d of beta; want as many rows",
			rows, len(k), len(v), len(decays), len(betas))
	case state.st == nil || pending.st == nil || state.box.n != r.m*r.n || w.last(state) != r.n ||
		w.last(pending) != r.width() || pending.box.n < rows*r.width():
		return w.misfit(o, "has a state that is not %d rows of %d elements, or pending rows that are not %d of %d or "+
			"more", r.m, r.n, rows, r.width())
	}
	for i := range 2 {
		in, out := &o.in[5+i], &o.out[1+i]
		if out.st != in.st || fmt.Sprint(o.src.In[5+i].Dims) != fmt.Sprint(o.src.Out[1+i].Dims) {
			return w.misfit(o, "keeps output %d, which is not the view of input %d", 2+i, 6+i)
		}
	}
	r.s, r.pending = w.times(w.floats(&o.in[5]), 1), w.times(w.floats(&o.in[6]), 1)
	pos := w.ofRow(o, "pos", 0, 0)
	if problem := r.begin(pos); problem != "" {
		return diag.Errorf(CodeValue, w.task.pos(), "%v %s", ir.RECURRENCE, problem)
	}
	kept := w.times(r.s, 1)
	clear(r.pending)
	out := w.alloc(len(v))
	for b := range rows {
		w.spend(3 * len(r.s))
		key, row := k[b*r.m:(b+1)*r.m], r.pending[b*r.width():(b+1)*r.width()]
		row[0], row[1] = float32(pos+b+1), decays[b]
		copy(row[2:], key)
		u := row[2+r.m:]
		r.decays(decays[b])
		if o.src.IntAt("delta", 0, 0) == 1 {
			r.times(u, key)
		}
		for j := range u {
			u[j] = betas[b] * (v[b*r.n+j] - u[j])
		}
		r.adds(key, u)
		r.times(out[b*r.n:(b+1)*r.n], q[b*r.m:(b+1)*r.m])
	}
	if err := w.put(o, &o.out[0], value{f: out, last: r.n}); err != nil {
		return err
	}
	if err := w.put(o, &o.out[1], value{f: kept, last: r.n}); err != nil {
		return err
	}
	return w.put(o, &o.out[2], value{f: r.pending, last: r.width()})
}
