package refvm

import "math"

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
