package refvm

import (
	"math"

	ops "amkc/ir/op"
)

var attending = kernelTable{
	ops.ATTENTION:        attention,
	ops.AttentionCombine: attentionCombine,
	ops.KVAppend:         kvAppend,
}

// attention lets each query head look at the rows of the cache: a softmax over the scaled products with their keys
// weighs their values. G = n_heads/n_kv_heads query heads share a key and value head. The rows of the pass itself,
// which are not in the cache yet, may come as two more operands: a query sees those up to its own. What it makes of an
// earlier one is what it makes of a row of the cache, which that one is for the pass after.
//
// A task that sees a part of the rows only leaves (acc, m, l) a head for attentionCombine: the weighted sum, the
// largest score, and the sum of the weights, all relative to that score. A sink of a head is a score without a value.
func attention(w *worker, o *op) error {
	a, err := w.attended(o)
	if err != nil {
		return err
	}
	partial := o.src.IntAt("flags", 0, 0)&2 != 0
	width := a.hd
	if partial {
		width += 2
	}
	scores := w.alloc(len(a.keys.rows) + a.batch)
	first, count := o.src.IntAt("first_row", 0, 0), o.src.IntAt("rows", 0, a.batch)
	if o.src.Has("first_row") && !o.src.Has("rows") {
		return w.misfit(o, noRows)
	}
	if first < 0 || count < 1 || count > a.batch-first {
		return w.misfit(o, "takes %d queries from query %d on, of %d; want queries that are there", count, first,
			a.batch)
	}
	out := w.alloc(count * a.heads * width)
	for b := first; b < first+count; b++ {
		w.spend(len(a.keys.numbers) + len(a.own))
		rows, own := a.seen(b)
		for h := range a.heads {
			kv := h / (a.heads / a.kvHeads)
			q := a.q[(b*a.heads+h)*a.hd:][:a.hd]
			seen := scores[:0]
			for r := rows; r < len(a.keys.rows); r++ {
				seen = append(seen, a.score(q, w.row(&a.keys, b, r, kv)))
			}
			for _, r := range own {
				w.spend(2 * a.hd) // for its value as well
				seen = append(seen, a.score(q, a.ownKeys.row(r*a.kvHeads+kv, r == b)))
			}
			to := out[((b-first)*a.heads+h)*width:][:width]
			acc := to[:a.hd]
			clear(acc)
			top, sum := maximum(seen), float32(0)
			if a.sinks != nil {
				top = max(top, a.sinks[h])
				sum = exp(a.sinks[h] - top)
			}
			for i, score := range seen {
				p := exp(score - top)
				sum += p
				if r := rows + i; r < len(a.keys.rows) {
					w.weigh(acc, &a.values, p, w.row(&a.values, b, r, kv), false)
				} else {
					r := own[r-len(a.keys.rows)]
					w.weigh(acc, &a.values, p, a.ownValues.row(r*a.kvHeads+kv, r == b), r == b)
				}
			}
			switch {
			case partial:
				to[a.hd], to[a.hd+1] = top, sum
			default:
				divide(acc, sum)
			}
		}
	}
	return w.emit(o, out, width)
}

// accumulate adds p times x to acc.
func accumulate(acc []float32, p float32, x []float32) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] += p * x[i]
	}
}

// divide ends a softmax. Without a row there is nothing to divide, and the result is 0.
func divide(acc []float32, sum float32) {
	if sum == 0 {
		return
	}
	for i := range acc {
		acc[i] /= sum
	}
}

// attended is what an attention op looks at.
type attended struct {
	batch, heads, kvHeads, hd int
	scale, cap                float32   // cap 0: there is none
	q                         []float32 // [batch, heads, hd]
	keys, values              cache
	ownKeys, ownValues        ownRows
	sinks                     []float32 // of the heads, of the task that counts them; nil: there are none
	own                       []int     // rows of the pass that take part, in order
	rows                      []int     // the position of each row, if window is not 0
	window                    int       // rows that a query sees, its own included; 0: all
}

// seen returns the first row of the cache that query b sees, and the rows of the pass that it sees.
func (a *attended) seen(b int) (from int, own []int) {
	end := len(a.own)
	for end > 0 && a.own[end-1] > b {
		end--
	}
	own = a.own[:end]
	if a.window > 0 {
		first := a.rows[b] - a.window + 1
		for from < len(a.keys.numbers) && a.keys.numbers[from] < first {
			from++
		}
		for len(own) > 0 && a.rows[own[0]] < first {
			own = own[1:]
		}
	}
	return from, own
}

// score is what a query makes of a key.
func (a *attended) score(q []float32, k row) float32 {
	score := dot(q, k.elements) * k.scale * a.scale
	if a.cap > 0 {
		score = bounded(score, a.cap)
	}
	return score
}

func (w *worker) attended(o *op) (a attended, err error) {
	a.heads, a.kvHeads, a.hd = o.src.IntAt("n_heads", 0, 0), o.src.IntAt("n_kv_heads", 0, 0),
		o.src.IntAt("head_dim", 0, 0)
	a.scale, a.cap = float32(o.src.FloatOr("scale", 0)), float32(o.src.FloatOr("cap", 0))
	if a.hd < 1 || a.kvHeads < 1 || a.heads < 1 || a.heads%a.kvHeads != 0 || len(o.in) == 4 {
		return a, w.misfit(o, "has %d heads, %d key and value heads, head_dim %d and %d inputs; want a multiple of "+
			"the second, and 3, 5 or 6 inputs", a.heads, a.kvHeads, a.hd, len(o.in))
	}
	a.q = w.exchanged(&o.in[0], &o.in[1])
	if n := len(a.q); a.heads <= n && a.hd <= n { // or the product might overflow
		a.batch = n / (a.heads * a.hd)
	}
	if a.batch < 1 || len(a.q) != a.batch*a.heads*a.hd {
		return a, w.misfit(o, "has %d query elements, want %d heads of %d", len(a.q), a.heads, a.hd)
	}
	w.lists = w.lists[:0]
	if a.keys, err = w.cache(o, &o.in[1], &a); err != nil {
		return a, err
	}
	if a.values, err = w.cache(o, &o.in[2], &a); err != nil {
		return a, err
	}
	if len(a.keys.rows) != len(a.values.rows) {
		return a, w.misfit(o, "has %d rows of keys and %d of values, want the same number", len(a.keys.rows),
			len(a.values.rows))
	}
	if len(o.in) >= 5 { // read whether it is used or not: what a task polls does not depend on the position
		a.ownKeys, a.ownValues = w.ownRows(&o.in[3], &o.in[1], a.hd), w.ownRows(&o.in[4], &o.in[2], a.hd)
		if n, k, v := a.batch*a.kvHeads*a.hd, len(a.ownKeys.given), len(a.ownValues.given); k != n || v != n {
			return a, w.misfit(o, "has rows of %d and %d elements, want %d each", k, v, n)
		}
		if caches := max(len(a.keys.batch), len(a.values.batch)); a.batch > 1 && (caches > 1 || !o.src.Has("row")) {
			return a, w.misfit(o, "has %d rows to append and %d caches, want one cache and the position of each row",
				a.batch, caches)
		}
		a.own = w.owned(o, a.batch)
	}
	if len(o.in) == 6 {
		sinks := w.floats(&o.in[5])
		if len(sinks) != a.heads {
			return a, w.misfit(o, "has %d sinks, want one for each of %d heads", len(sinks), a.heads)
		}
		if o.src.IntAt("part", 0, 0) == 0 {
			a.sinks = sinks
		}
	}
	if a.window = o.src.IntAt("window", 0, 0); a.window > 0 {
		if !o.src.Has("row") {
			return a, w.misfit(o, "has a window of %d rows, want the position of each row", a.window)
		}
		w.claimInts(a.batch)
		for b := range a.batch {
			w.spend(1)
			a.rows = append(a.rows, w.ofRow(o, "row", b, 0))
		}
	}
	return a, nil
}

// exchanged returns an operand that meets rows of a cache. A temporary is rounded to the cache's type first, as a
// buffer of an exchange has been; where that is integers, to the type that is exchanged.
func (w *worker) exchanged(o, cache *operand) []float32 {
	values := w.floats(o)
	switch {
	case o.st != nil || cache.st == nil:
		return values
	case cache.st.rows != nil:
		return rounderFor(w.vm.opts.Round, w.vm.activations).all(values)
	}
	return cache.st.round.all(values)
}

// owned returns which of the rows of the pass fall into the task's share of the rows.
func (w *worker) owned(o *op, batch int) []int {
	var own []int
	parts, block, part := o.src.IntAt("parts", 0, 1), max(1, o.src.IntAt("block", 0, 1)), o.src.IntAt("part", 0, 0)
	w.claimInts(batch)
	for r := range batch {
		w.spend(1)
		if parts <= 1 || w.ofRow(o, "row", r, w.at[0])/block%parts == part {
			own = append(own, r)
		}
	}
	return own
}

// A cache is a view of keys or values, as offsets of rows of hd elements: batch[b] + rows[r] + heads[h]. All queries
// share a batch of one. Row r is row numbers[r] of the buffer.
type cache struct {
	st                          *store
	hd                          int
	batch, rows, heads, numbers []int
}

// cache finds out which dimension of a view is which: [rows, hd], [rows, heads, hd], [batch, rows, heads, hd], or the
// native [heads, rows, 1, hd], before which one of several sequences may stand.
func (w *worker) cache(o *op, v *operand, a *attended) (cache, error) {
	none := cache{}
	if v.st == nil {
		return none, w.misfit(o, "has a temporary as its cache, want a view of a buffer")
	}
	n := func(d int) int { return v.dims[d].n }
	last := v.rank - 1
	batch, rows, heads := -1, -1, -1
	switch {
	case v.rank == 4 && n(0) == a.batch && n(2) == a.kvHeads:
		batch, rows, heads = 0, 1, 2
	case v.rank == 4 && n(0) == a.kvHeads && n(2) == 1:
		heads, rows = 0, 1
	case v.rank == 5 && n(0) == 1 && n(1) == a.kvHeads && n(3) == 1:
		heads, rows = 1, 2
	case v.rank == 3 && n(1) == a.kvHeads:
		rows, heads = 0, 1
	case v.rank == 2 && a.kvHeads == 1:
		rows = 0
	}
	if rows < 0 || n(last) != a.hd || v.dims[last].parts > 1 {
		return none, w.misfit(o, "has a cache view of %d dimensions that is not [rows, %d, %d], for each of %d queries",
			v.rank, a.kvHeads, a.hd, a.batch)
	}
	c := cache{st: v.st, hd: a.hd}
	base := v.dims[last].lo
	for d := range last {
		if d != batch && d != rows && d != heads {
			base += v.dims[d].at(0) * v.st.step[d]
		}
	}
	c.batch = w.offsets(v, batch, base)
	c.rows = w.offsets(v, rows, 0)
	c.heads = w.offsets(v, heads, 0)
	from := len(w.lists)
	w.claimInts(v.dims[rows].n)
	for i := range v.dims[rows].n {
		w.lists = append(w.lists, v.dims[rows].at(i))
	}
	c.numbers = w.lists[from:len(w.lists):len(w.lists)]
	return c, nil
}

// offsets lists base plus the offset of every element of a dimension; of none, just base.
func (w *worker) offsets(v *operand, d, base int) []int {
	from := len(w.lists)
	if d < 0 {
		w.lists = append(w.lists, base)
	} else {
		w.claimInts(v.dims[d].n)
		for i := range v.dims[d].n {
			w.lists = append(w.lists, base+v.dims[d].at(i)*v.st.step[d])
		}
	}
	return w.lists[from:len(w.lists):len(w.lists)]
}

// attentionCombine joins partial results. A part without rows has m = -Inf and l = 0, and weighs nothing.
func attentionCombine(w *worker, o *op) error {
	if o.src.Has("splits") {
		return combineSplits(w, o)
	}
	hd, heads := o.src.IntAt("head_dim", 0, 0), o.src.IntAt("n_heads", 0, 0)
	first := w.floats(&o.in[0])
	if hd < 1 || heads < 1 || len(first) != heads*(hd+2) {
		return w.misfit(o, "has partials of %d elements, want %d heads of %d and 2 more", len(first), heads, hd)
	}
	parts := make([][]float32, len(o.in))
	for k := range o.in {
		if parts[k] = w.floats(&o.in[k]); len(parts[k]) != len(first) {
			return w.misfit(o, "has partials of %d and %d elements, want the same number", len(first), len(parts[k]))
		}
	}
	out := w.alloc(heads * hd)
	clear(out)
	for h := range heads {
		w.spend(len(parts) * hd)
		at, to := h*(hd+2), out[h*hd:][:hd]
		top, sum := float32(math.Inf(-1)), float32(0)
		for _, p := range parts {
			top = max(top, p[at+hd])
		}
		for _, p := range parts {
			if weight := share(p[at+hd], p[at+hd+1], top); weight != 0 {
				sum += weight * p[at+hd+1]
				accumulate(to, weight, p[at:at+hd])
			}
		}
		divide(to, sum)
	}
	return w.emit(o, out, hd)
}

// combineSplits joins elements of one head: acc [n, w] and (m, l) [n, 2] of its n splits.
func combineSplits(w *worker, o *op) error {
	n := o.src.IntAt("splits", 0, 0)
	if len(o.in) != 2 {
		return w.misfit(o, "has %d inputs, want 2 with splits", len(o.in))
	}
	acc, ml := w.floats(&o.in[0]), w.floats(&o.in[1])
	if n < 1 || len(ml) != 2*n || len(acc)%n != 0 {
		return w.misfit(o, "has %d elements and %d of m and l, want both for %d splits", len(acc), len(ml), n)
	}
	width := len(acc) / n
	out := w.alloc(width)
	clear(out)
	top, sum := float32(math.Inf(-1)), float32(0)
	for i := range n {
		top = max(top, ml[2*i])
	}
	for i := range n {
		w.spend(width)
		if weight := share(ml[2*i], ml[2*i+1], top); weight != 0 {
			sum += weight * ml[2*i+1]
			accumulate(out, weight, acc[i*width:(i+1)*width])
		}
	}
	divide(out, sum)
	return w.emit(o, out, width)
}

// share is the factor that brings a part with maximum m and sum l to the maximum of all.
func share(m, l, top float32) float32 {
	if l == 0 {
		return 0
	}
	return exp(m - top)
}

const noRows = "has first_row and no parameter rows, want both or none"
