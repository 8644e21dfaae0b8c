package refvm

import (
	"math"
	"slices"
)

// ofShortConv: the VM and the kernel add the same rounded products in the same order, so that what is exact before
// stays so.
func ofShortConv(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	n, taps, by := w.last(&o.in[0]), o.src.IntAt("taps", 0, 0), w.floats(&o.in[2])
	w.lists = w.lists[:0]
	past, err := w.cache(o, &o.in[1], &attended{batch: 1, kvHeads: 1, hd: n})
	if err != nil {
		return radii{}
	}
	out := make([]float64, len(result.f))
	for i := range out {
		own, channel := len(past.rows)+i/n, i%n
		sum := 0.0
		for t := max(0, taps-1-own); t < taps; t++ {
			f, e := 0.0, 0.0
			if from := own - (taps - 1) + t; from < len(past.rows) {
				row := w.seenRow(&past, 0, from, 0)
				f, e = float64(row.elements[channel]), at(row.radii, channel)
			} else {
				k := (from-len(past.rows))*n + channel
				f, e = float64(x[k]), at(r, k)
			}
			tap := math.Abs(float64(by[channel*taps+t]))
			out[i] += tap * e
			sum += tap * (math.Abs(f) + e)
		}
		if out[i] > 0 {
			out[i] += 4 * float64(taps+1) * roundoff * (sum + math.Abs(float64(result.f[i])))
		}
	}
	return radii{of: out}
}

// ofStateConv is ofShortConv with rows that a state keeps, which are rounded nowhere.
func ofStateConv(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	past, pr := w.balls(&o.in[1])
	n, taps, by, pos := w.last(&o.in[0]), o.src.IntAt("taps", 0, 0), w.floats(&o.in[2]), w.ofRow(o, "pos", 0, 0)
	count, kept := len(past)/n, make([]float64, len(past))
	copy(kept, pr)
	for i := range x {
		kept[(pos+i/n)%count*n+i%n] = at(r, i)
	}
	out := make([]float64, len(result.f))
	for i := range out {
		own, channel, sum := pos+i/n, i%n, 0.0
		for t := max(0, taps-1-own); t < taps; t++ {
			p := own - (taps - 1) + t
			at := p%count*n + channel
			f := math.Abs(float64(past[at]))
			if p >= pos {
				f = math.Abs(float64(x[(p-pos)*n+channel]))
			}
			tap := math.Abs(float64(by[channel*taps+t]))
			out[i] += tap * kept[at]
			sum += tap * (f + kept[at])
		}
		if out[i] > 0 {
			out[i] += 4 * float64(taps+1) * roundoff * (sum + math.Abs(float64(result.f[i])))
		}
	}
	return radii{of: out, more: []radii{{of: kept}}}
}

func ofL2Norm(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	n, eps := o.src.IntAt("head_dim", 0, 0), o.src.FloatOr("eps", 0)
	scale := math.Abs(o.src.FloatOr("scale", 0))
	out := make([]float64, len(x))
	for first := 0; first < len(x); first += n {
		squares, moved := newSum(), 0.0
		for i := first; i < first+n; i++ {
			f, e := math.Abs(float64(x[i])), at(r, i)
			squares.add(f * f)
			moved += 2*f*e + e*e
		}
		if !w.same {
			moved += squares.radius()
		}
		all := squares.value + eps
		relative := moved/(2*max(all-moved, 0x1p-149)) + 2*twoUlp + 8*roundoff
		for i := first; i < first+n; i++ {
			out[i] = at(r, i)*scale/math.Sqrt(max(all-moved, 0x1p-149)) + math.Abs(float64(result.f[i]))*relative
		}
	}
	return radii{of: out}
}

func ofDecay(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	a, bias := w.floats(&o.in[1]), w.floats(&o.in[2])
	out := make([]float64, len(x))
	for i, f := range x {
		y := float64(f) + float64(bias[i%len(a)])
		softplus := max(y, 0) + math.Log1p(math.Exp(-math.Abs(y)))
		e := at(r, i) + 2*roundoff*math.Abs(y) + softplus*(2*twoUlp+6*roundoff)
		rate := math.Exp(float64(a[i%len(a)]))
		off := rate * (e + softplus*(twoUlp+4*roundoff))
		out[i] = float64(result.f[i])*(math.Expm1(off)+twoUlp) + 0x1p-149
	}
	return radii{of: out}
}

// A near is a number, and how far that of a correct kernel may be from it.
type near struct{ at, radius float64 }

// times is a product, with an error of the roundings of n additions of such products.
func (b near) times(c near, unit float64) near {
	x, y := math.Abs(b.at), math.Abs(c.at)
	return near{b.at * c.at, x*c.radius + y*b.radius + b.radius*c.radius + unit*(x+b.radius)*(y+c.radius)}
}

func (b near) plus(c near, unit float64) near {
	return near{b.at + c.at, b.radius + c.radius + unit*(math.Abs(b.at)+b.radius+math.Abs(c.at)+c.radius)}
}

// ofRecurrence steps the state with the radii of its elements.
func ofRecurrence(w *worker, o *op, result value) radii {
	balls := func(i int) []near {
		x, r := w.balls(&o.in[i])
		out := make([]near, len(x))
		for k, f := range x {
			out[k] = near{float64(f), at(r, k)}
		}
		return out
	}
	q, k, v, decays, betas, s, left := balls(0), balls(1), balls(2), balls(3), balls(4), balls(5), balls(6)
	m, n := w.last(&o.in[0]), w.last(&o.in[2])
	unit, width := 4*roundoff, 2+m+n
	ofSum := 2 * float64(m+4) * roundoff
	if w.same {
		unit, ofSum = 0, 0
	}
	step := func(decay near, key, u []near) {
		for i := range s {
			s[i] = s[i].times(decay, unit).plus(key[i/n].times(u[i%n], unit), unit)
		}
	}
	times := func(x []near) []near {
		out := make([]near, n)
		for i := range s {
			out[i%n] = out[i%n].plus(s[i].times(x[i/n], ofSum), 0)
		}
		return out
	}
	pos := w.ofRow(o, "pos", 0, 0)
	if pos == 0 {
		clear(s)
	}
	for from := 0; pos > 0 && from < len(left); from += width {
		row := left[from : from+width]
		if next := int(row[0].at); next < 1 || next > pos {
			break
		}
		step(row[1], row[2:2+m], row[2+m:])
	}
	was := radiiOfNear(s)
	clear(left)
	var out []near
	for b := range len(q) / m {
		key, row := k[b*m:(b+1)*m], left[b*width:(b+1)*width]
		decayed := slices.Clone(s)
		step(decays[b], key, make([]near, n))
		found := make([]near, n)
		if o.src.IntAt("delta", 0, 0) == 1 {
			found = times(key)
		}
		u := row[2+m:]
		for j := range u {
			found[j].at = -found[j].at
			u[j] = betas[b].times(v[b*n+j].plus(found[j], unit), unit)
		}
		s = decayed
		step(decays[b], key, u)
		out = append(out, times(q[b*m:(b+1)*m])...)
		row[1] = decays[b]
		copy(row[2:], key)
	}
	return radii{of: radiiOfNear(out), more: []radii{{of: was}, {of: radiiOfNear(left)}}}
}

func radiiOfNear(balls []near) []float64 {
	out := make([]float64, len(balls))
	for i, b := range balls {
		out[i] = b.radius
	}
	return out
}
