package refvm

import (
	"math"

	"amkc/ir"
	ops "amkc/ir/op"
)

var norms = kernelTable{
	ops.RMSNORM:   rmsnorm,
	ops.LAYERNORM: layernorm,
}

// normed returns x, the weight g, and how many elements of x are normalised together: as many as g has, or a head. Then
// g is for one head, or for each of a row.
func (w *worker) normed(o *op) (x, g []float32, n int, err error) {
	x = w.floats(&o.in[0])
	if len(o.in) > 1 {
		g = w.floats(&o.in[1])
	}
	if n = len(g); o.src.Has("head_dim") {
		n = o.src.IntAt("head_dim", 0, 0)
		last := w.last(&o.in[0])
		if o.src.Code == ir.RMSNORM && len(o.in) == 1 && 0 < n && n <= last {
			g = w.noGain(o, n)
		}
		if n < 1 || last%n != 0 || len(g) != n && len(g) != last {
			return nil, nil, 0, w.misfit(o, "has rows of %d elements and a weight of %d, want whole heads of %d, and "+
				"a weight for one or for each", last, len(g), n)
		}
	}
	if n == 0 || len(x)%n != 0 {
		return nil, nil, 0, w.misfit(o, "has %d elements and a weight of %d, want whole rows", len(x), len(g))
	}
	return x, g, n, nil
}

// noGain is the weight of a norm of heads that has none: it multiplies by 1.
func (w *worker) noGain(o *op, n int) []float32 {
	g := w.alloc(n)
	for i := range g {
		g[i] = 1 - float32(o.src.IntAt("unit_offset", 0, 0))
	}
	return g
}

// rmsnorm scales x to a mean square of 1, then by its weight g.
//
// The kernel wants the product x·g in the type its matrix units multiply, and knows the mean square only later. In mode
// Device the product of a temporary is therefore rounded before 1/rms, which is left to its reader: a product with a
// matrix applies it to the sums. So is that of the last hidden state, which is what the logits are made of. What is not
// multiplied by a matrix, heads and what is published or added to the residual, is computed in float32.
func rmsnorm(w *worker, o *op) error {
	x, g, n, err := w.normed(o)
	if err != nil {
		return err
	}
	eps := float32(o.src.FloatOr("eps", 0))
	if o.src.IntAt("unit_offset", 0, 0) != 0 {
		g = w.times(g, 1)
		for i := range g {
			g[i]++
		}
	}
	var round rounder
	ofHeads, whole := o.src.Has("head_dim"), x
	if len(o.in) == 3 {
		whole = w.floats(&o.in[2])
	}
	m := n // elements of a row of the whole
	switch {
	case ofHeads && len(o.in) == 3:
		return w.misfit(o, "has head_dim and a whole, want one of them")
	case len(o.in) == 3 && (w.last(&o.in[0]) != n || w.last(&o.in[2]) == 0 ||
		len(whole) != len(x)/n*w.last(&o.in[2])):
		return w.misfit(o, "has %d rows of %d elements, a weight of %d, and a whole of %d, want as many rows",
			len(x)/n, w.last(&o.in[0]), n, len(whole))
	case len(o.in) == 3: // of heads too, which are not multiplied by a matrix
		m = w.last(&o.in[2])
	case !ofHeads && o.in[0].st != nil && (o.out[0].st == nil || o.out[0].st.buf.HasRole(ir.RoleHidden)):
		round = o.in[0].st.round
	}
	out, inverses := w.alloc(len(x)), w.alloc(len(x)/n)
	for b := range inverses {
		row, to, of := x[b*n:(b+1)*n], out[b*n:(b+1)*n], whole[b*m:(b+1)*m]
		inverse := float32(1 / math.Sqrt(float64(dot(of, of)/float32(m)+eps)))
		inverses[b] = inverse
		for i, f := range row {
			if round == nil {
				to[i] = f * inverse * g[(b*n+i)%len(g)]
			} else {
				to[i] = round(f * g[i])
			}
		}
	}
	if round == nil {
		if ofHeads {
			n = w.last(&o.in[0])
		}
		return w.emit(o, out, n)
	}
	for k := range o.out {
		if err := w.put(o, &o.out[k], value{f: out, last: n, scales: inverses}); err != nil {
			return err
		}
	}
	return nil
}

// layernorm scales x to mean 0 and variance 1, then by its weight, and adds its bias, as far as there are any.
//
// The kernel has the whole vector before it multiplies any of it: to take the mean off what was rounded would cost more
// bits than the mean has. In mode Device the result is rounded once, to the type of x, which the matrix units multiply;
// heads are not multiplied by a matrix.
func layernorm(w *worker, o *op) error {
	x, n := w.floats(&o.in[0]), w.last(&o.in[0])
	var gain, bias []float32
	if len(o.in) > 1 {
		var err error
		if x, gain, n, err = w.normed(o); err != nil {
			return err
		}
	}
	if len(o.in) == 3 {
		if bias = w.floats(&o.in[2]); len(bias) != len(gain) {
			return w.misfit(o, "has a weight of %d elements and a bias of %d, want the same number", len(gain),
				len(bias))
		}
	}
	ofHeads := o.src.Has("head_dim")
	if ofHeads && len(o.in) == 1 {
		return w.misfit(o, "has head_dim and no weight, want one")
	}
	eps, offset := float32(o.src.FloatOr("eps", 0)), float32(o.src.IntAt("unit_offset", 0, 0))
	var round rounder
	if o.in[0].st != nil && !ofHeads {
		round = o.in[0].st.round
	}
	out := w.alloc(len(x))
	for at := 0; at < len(x); at += n {
		row, to := x[at:at+n], out[at:at+n]
		mean, variance := float32(0), float32(0)
		for _, f := range row {
			mean += f
		}
		mean /= float32(n)
		for i, f := range row {
			to[i] = f - mean
			variance += to[i] * to[i]
		}
		inverse := float32(1 / math.Sqrt(float64(variance/float32(n)+eps)))
		for i := range to {
			to[i] *= inverse
			if gain != nil {
				to[i] *= offset + gain[(at+i)%len(gain)]
			}
			if bias != nil {
				to[i] += bias[(at+i)%len(bias)]
			}
			to[i] = round.of(to[i])
		}
	}
	return w.emit(o, out, w.last(&o.in[0]))
}
