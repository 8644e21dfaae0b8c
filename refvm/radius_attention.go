package refvm

import (
	"math"

	"amkc/ir"
)

// quotient is the error of a quotient of two results, relative.
func (w *worker) quotient() float64 {
	if w.onTensorCores() {
		return twoUlp + roundoff
	}
	return 2 * roundoff
}

// slack is by how much a score may exceed the one that probabilities are relative to.
const slack = 8 * math.Ln2

// probability is the relative error of one rounding of a probability, and the absolute one of the smallest.
func (w *worker) probability() (relative, absolute float64) {
	switch w.vm.activations {
	case ir.BF16:
		return 0x1p-8, 0
	case ir.F16:
		return 0x1p-11, 0x1p-25
	}
	return 0, 0
}

// reachOf returns the radii of the rows that are being appended, as attention has them.
func (w *worker) reachOf(given, cache *operand) []float64 {
	x, r := w.balls(given)
	wide := r
	if w.same {
		wide = w.wide(given)
	}
	switch {
	case r == nil:
		return nil
	case cache.st.rows != nil:
		return cache.st.rows.radii(x, r, wide)
	case given.st != nil:
		return r
	}
	out := make([]float64, len(r))
	for i := range r {
		out[i] = w.rounded(cache.st.buf.DType, x[i], r[i], wide[i])
	}
	return out
}

// A seenRow is a key or a value with its radii; nil stands for zeros.
type seenRow struct {
	row
	radii []float64
}

func (w *worker) seenRow(c *cache, b, r, h int) seenRow {
	lo := c.batch[min(b, len(c.batch)-1)] + c.rows[r] + c.heads[h]
	s := seenRow{row: w.row(c, b, r, h)}
	switch {
	case w.same && c.st.same != nil:
		s.radii = c.st.same[lo : lo+c.hd]
	case !w.same && c.st.radius != nil:
		s.radii = c.st.radius[lo : lo+c.hd]
	}
	return s
}

func ofAttention(w *worker, o *op, result value) radii {
	a, err := w.attended(o)
	if err != nil {
		return radii{}
	}
	qOff := w.radiiOf(&o.in[0])
	if o.in[0].st == nil && qOff != nil { // rounded as exchanged does
		rounded, wide := make([]float64, len(qOff)), w.wide(&o.in[0])
		raw := w.floats(&o.in[0])
		for i := range rounded {
			rounded[i] = w.rounded(w.vm.activations, raw[i], qOff[i], wide[i])
		}
		qOff = rounded
	}
	var kOff, vOff []float64
	if len(o.in) >= 5 {
		kOff, vOff = w.reachOf(&o.in[3], &o.in[1]), w.reachOf(&o.in[4], &o.in[2])
	}
	partial := o.src.IntAt("flags", 0, 0)&2 != 0
	width := a.hd
	if partial {
		width += 2
	}
	first, count := o.src.IntAt("first_row", 0, 0), o.src.IntAt("rows", 0, a.batch)
	out := make([]float64, count*a.heads*width)
	for b := first; b < first+count; b++ {
		rows, own := a.seen(b)
		for h := range a.heads {
			kv := h / (a.heads / a.kvHeads)
			at := (b*a.heads + h) * a.hd
			q := ball{a.q[at:][:a.hd], section(qOff, at, a.hd)}
			var keys, values []seenRow
			for r := rows; r < len(a.keys.rows); r++ {
				keys = append(keys, w.seenRow(&a.keys, b, r, kv))
				values = append(values, w.seenRow(&a.values, b, r, kv))
			}
			for _, r := range own {
				n := r*a.kvHeads + kv
				keys = append(keys, seenRow{a.ownKeys.row(n, r == b), section(kOff, n*a.hd, a.hd)})
				values = append(values, seenRow{a.ownValues.row(n, r == b), section(vOff, n*a.hd, a.hd)})
			}
			to := ((b-first)*a.heads + h) * width
			w.ofHead(&a, a.sinkOf(h), q, keys, values, partial, result.f[to:to+width], out[to:to+width])
		}
	}
	return radii{of: out}
}

// sinkOf is the sink of a head; empty: there is none.
func (a *attended) sinkOf(h int) []float32 {
	if a.sinks == nil {
		return nil
	}
	return a.sinks[h : h+1]
}

type ball struct {
	x []float32
	r []float64
}

// ofScore returns a score and its radius.
func (w *worker) ofScore(a *attended, q ball, k *seenRow) (score, radius float64) {
	size, moved, y := 0.0, 0.0, 0.0
	scale := math.Abs(float64(a.scale))
	for i, f := range q.x {
		kf := float64(k.elements[i]) * float64(k.scale)
		y += float64(f) * kf
		size += math.Abs(float64(f) * kf)
		moved += math.Abs(float64(f))*at(k.radii, i) + at(q.r, i)*(math.Abs(kf)+at(k.radii, i))
	}
	chain := float64(a.hd/4 + 16)
	if w.onTensorCores() {
		chain += stepCuts * float64((a.hd+15)/16)
	}
	score = y * float64(a.scale)
	if !w.same || moved > 0 {
		radius = scale*(size*chain*roundoff+moved) + 4*roundoff*math.Abs(score)
	}
	if a.cap > 0 {
		bound := float64(a.cap)
		x := score / bound
		score = bound * math.Tanh(x)
		if w.onTensorCores() {
			radius += bound * (0x1p-20 + math.Abs(x)*6*roundoff)
		} else {
			radius += math.Abs(score) * 8 * roundoff
		}
	}
	return score, radius
}

// ofHead bounds what attention makes of one head, with its sink if there is one: a score without a value.
func (w *worker) ofHead(a *attended, sink []float32, q ball, keys, values []seenRow, partial bool, result []float32,
	out []float64) {
	n := len(keys) + len(sink)
	if n == 0 {
		return
	}
	scores, off := make([]float64, n), make([]float64, n)
	top, topOff := math.Inf(-1), 0.0
	for i := range scores {
		if i < len(keys) {
			scores[i], off[i] = w.ofScore(a, q, &keys[i])
		} else {
			scores[i] = float64(sink[0])
		}
		if scores[i] > top {
			top = scores[i]
		}
	}
	for i := range scores {
		if scores[i]+off[i] >= top-off[i] {
			topOff = max(topOff, off[i])
		}
	}
	relative, absolute := w.probability()
	rescaled := 0.0 // how often sums are brought to another base, 2 ulp each: by blocks, and as shares are joined
	if n > 1 {
		rescaled = float64(n/16+12) * twoUlp
	}
	chain := float64(n/4 + 8)
	if w.onTensorCores() {
		chain += stepCuts * float64((n+15)/16)
	}
	numerators := make([]float64, 2*a.hd) // sizes, and radii
	sum, sumOff := 0.0, 0.0
	for i := range scores {
		p, e, rounding := 1.0, 0.0, 0.0
		if n > 1 {
			p = math.Exp(scores[i] - top)
			e = math.Expm1(off[i]) + (math.Abs(scores[i])+math.Abs(top)+slack)*2*roundoff + twoUlp + 2*roundoff +
				rescaled
			if rounding = 2 * relative; w.same { // of two kernels one rounds up, and the other down
				rounding = relative
			}
		}
		sum += p
		sumOff += p * e
		if i == len(keys) {
			break // the sink
		}
		for d := range a.hd {
			v := float64(values[i].elements[d]) * float64(values[i].scale)
			size := p * math.Abs(v)
			numerators[d] += size
			numerators[a.hd+d] += size*(e+rounding) + p*at(values[i].radii, d)
			if n > 1 {
				numerators[a.hd+d] += 2 * absolute * math.Abs(v)
			}
		}
	}
	if n > 1 {
		sumOff += sum * chain * roundoff
	}
	for d := range a.hd {
		e := numerators[a.hd+d]
		if n > 1 {
			e += numerators[d] * chain * roundoff
		}
		f := math.Abs(float64(result[d]))
		switch {
		case partial:
			out[d] = e + f*topOff
		case n == 1 && !w.onTensorCores():
			out[d] = e // over 1
		default:
			out[d] = (e+f*sumOff)/sum + f*w.quotient()
		}
	}
	if partial {
		if out[a.hd] = topOff; !w.same || topOff > 0 {
			out[a.hd] += math.Abs(top) * 6 * roundoff
		}
		out[a.hd+1] = sumOff
		if n > 1 {
			out[a.hd+1] += sum * topOff
		}
	}
}

func ofCombine(w *worker, o *op, result value) radii {
	if !o.src.Has("splits") {
		return radii{} // of the AMK profile alone
	}
	acc, accOff := w.balls(&o.in[0])
	ml, mlOff := w.balls(&o.in[1])
	n := o.src.IntAt("splits", 0, 0)
	width, top, parts := len(acc)/n, math.Inf(-1), 0
	for i := range n {
		if ml[2*i+1] != 0 {
			top = max(top, float64(ml[2*i]))
			parts++
		}
	}
	out := make([]float64, width)
	sum, sumOff := 0.0, 0.0
	sizes, moved := make([]float64, width), make([]float64, width)
	for i := range n {
		m, l := float64(ml[2*i]), float64(ml[2*i+1])
		if l == 0 {
			continue
		}
		weight, e := math.Exp(m-top), 0.0
		if parts > 1 {
			e = float64(parts)*(twoUlp+3*roundoff) + (math.Abs(m)+math.Abs(top))*3*roundoff + at(mlOff, 2*i)
		}
		sum += weight * l
		sumOff += weight * (l*e + at(mlOff, 2*i+1))
		for d := range width {
			f := math.Abs(float64(acc[i*width+d]))
			sizes[d] += weight * f
			moved[d] += weight * (f*e + at(accOff, i*width+d))
		}
	}
	if sum == 0 {
		return radii{}
	}
	for d := range out {
		f := math.Abs(float64(result.f[d]))
		out[d] = (moved[d] + f*sumOff) / sum
		if out[d] > 0 || w.onTensorCores() {
			out[d] += f * w.quotient()
		}
	}
	return radii{of: out}
}
