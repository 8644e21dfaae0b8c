package refvm

import "math"

func nothing(*worker, *op, value) radii { return radii{} }

func passed(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	if len(x) != len(result.f) && r != nil { // some of the rows, or those of a share
		most := 0.0
		for _, e := range r {
			most = max(most, e)
		}
		r = make([]float64, len(result.f))
		for i := range r {
			r[i] = most
		}
	}
	return radii{of: r}
}

func ofSum(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	y, s := w.balls(&o.in[1])
	if r == nil && s == nil {
		return radii{}
	}
	out := make([]float64, len(x))
	for i := range out {
		if out[i] = at(r, i) + at(s, i%len(y)); out[i] > 0 {
			out[i] += 2 * roundoff * math.Abs(float64(result.f[i]))
		}
	}
	return radii{of: out}
}

// ofScale is for functions by which a radius grows as the value does, which rounds once.
func ofScale(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	var y []float32
	var s []float64
	if len(o.in) == 2 {
		y, s = w.balls(&o.in[1])
	}
	out := make([]float64, len(result.f))
	for i := range out {
		e := at(r, i)
		if y != nil {
			e = e*math.Abs(float64(y[i])) + at(s, i)*(math.Abs(float64(x[i]))+at(r, i))
		} else {
			e *= math.Abs(o.src.FloatOr("scale", 1))
		}
		if out[i] = e; e > 0 {
			out[i] += 2 * roundoff * math.Abs(float64(result.f[i]))
		}
	}
	return radii{of: out}
}

func ofRope(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	if o.src.IntAt("order", 0, 0) == 0 {
		return radii{of: r} // of the AMK profile alone, which no kernel is emitted for
	}
	inv, hd, n := w.floats(&o.in[1]), o.src.IntAt("head_dim", 0, 0), w.last(&o.in[0])
	first := o.src.IntAt("first", 0, 0)
	turned := max(0, min(n, o.src.IntAt("limit", 0, first+n)-first))
	out, scale := make([]float64, len(x)), math.Abs(float64(stretch(o)))
	copy(out, r)
	for b := range w.rows(&o.in[0]) {
		pos := float64(w.ofRow(o, "pos", b, w.at[0]))
		for i := 0; i < turned; i += 2 {
			pair := (first + i) % hd / 2
			if pair >= len(inv) || pos*float64(inv[pair]) == 0 && scale == 1 {
				continue
			}
			sin, cos := math.Sincos(pos * float64(inv[pair]))
			sin, cos = math.Abs(sin)*scale, math.Abs(cos)*scale
			for e := range 2 {
				at, other := b*n+i+e, b*n+i+1-e
				f, g := math.Abs(float64(x[at])), math.Abs(float64(x[other]))
				moved := 0.0
				if r != nil {
					moved = cos*r[at] + sin*r[other]
				}
				out[at] = moved + (f*cos+g*sin)*7*roundoff + (f+g)*scale*4*roundoff
			}
		}
	}
	return radii{of: out}
}

// around bounds how far a function moves where its argument is in reach.
func around(of func(float32) float32, x float32, r float64) float64 {
	if r == 0 {
		return 0
	}
	lo, hi, at := of(float32(float64(x)-r)), of(float32(float64(x)+r)), float64(of(x))
	// Nothing here has an extreme but the dip of an activation, which moves by less than its ends do by far.
	return max(math.Abs(float64(lo)-at), math.Abs(float64(hi)-at)) + r*r
}

// exponential is the error of e^-x as kernels compute it, relative: 2 ulp, and 1.173·abs(x) more where values are
// published in 16 bits.
func exponential(x float64, sixteen bool) float64 {
	if sixteen {
		return (2 + 1.173*math.Abs(x)) * 0x1p-23
	}
	return twoUlp
}

// sigmoidError is the error of v / (1 + e^-x), of v: that of e^-x counts as it takes part, and none where 1 is all.
func sigmoidError(x, argument float64, sixteen bool) float64 {
	e := math.Exp(-x)
	share := e / (1 + e)
	if !sixteen && e < 0x1p-26 {
		return 0
	}
	quotient := roundoff
	if sixteen {
		quotient = twoUlp
	}
	return share*(exponential(x, sixteen)+argument) + 2*roundoff + quotient
}

// An activationError is the error of a function of a number, of fp32 or of 16 bits.
type activationError func(x float64, sixteen bool) float64

func siluError(x float64, sixteen bool) float64 {
	return math.Abs(float64(silu(float32(x)))) * sigmoidError(x, 0, sixteen)
}

func geluTanhError(x float64, sixteen bool) float64 {
	y := math.Sqrt(8/math.Pi) * (x + 0.044715*x*x*x)
	return math.Abs(float64(geluTanh(float32(x)))) * sigmoidError(y, math.Abs(y)*5*roundoff, sixteen)
}

func geluError(x float64, _ bool) float64 {
	density := math.Exp(-x*x/2) * math.Abs(x)
	return math.Abs(x)/2*(twoUlp+density*2*roundoff) + 4*roundoff*math.Abs(float64(gelu(float32(x))))
}

func exactly(float64, bool) float64 { return 0 }

func ofPointwise(of func(float32) float32, off activationError) func(*worker, *op, value) radii {
	return func(w *worker, o *op, result value) radii {
		x, r := w.balls(&o.in[0])
		out := make([]float64, len(x))
		for i, f := range x {
			out[i] = around(of, f, at(r, i)) + off(float64(f), w.onTensorCores())
			if out[i] > 0 {
				out[i] += 2 * roundoff * math.Abs(float64(result.f[i]))
			}
		}
		return radii{of: out}
	}
}

func ofGated(of func(float32) float32, off activationError) func(*worker, *op, value) radii {
	return func(w *worker, o *op, result value) radii {
		out := make([]float64, len(result.f))
		x, r := w.balls(&o.in[0])
		y, s := x, r
		if len(o.in) == 2 {
			y, s = w.balls(&o.in[1])
		}
		for i := range out {
			g, u := 2*i, 2*i+1 // interleaved
			if len(o.in) == 2 {
				g, u = i, i
			}
			gate, up, gateOff, upOff := x[g], y[u], at(r, g), at(s, u)
			e := around(of, gate, gateOff) + off(float64(gate), w.onTensorCores())
			a := math.Abs(float64(of(gate)))
			if out[i] = e*(math.Abs(float64(up))+upOff) + a*upOff; out[i] > 0 {
				out[i] += 2 * roundoff * math.Abs(float64(result.f[i]))
			}
		}
		return radii{of: out}
	}
}

func ofXielu(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	by := w.floats(&o.in[1])
	softplus := func(x float32) float64 { return max(float64(x), 0) + math.Log1p(math.Exp(-math.Abs(float64(x)))) }
	beta := float64(by[2])
	above, below := softplus(by[0]), beta+softplus(by[1])
	out := make([]float64, len(x))
	for i, v := range x {
		f, e := float64(v), at(r, i)
		size, slope := math.Abs(below)*(math.Abs(math.Expm1(min(f, 0)))+math.Abs(f)), 2*math.Abs(below)
		if f > 0 {
			size, slope = math.Abs(above)*f*f, 2*math.Abs(above)*(f+e)
		}
		out[i] = e*(slope+math.Abs(beta)) + (size+math.Abs(beta*f))*0x1p-20
	}
	return radii{of: out}
}

func ofSoftCap(w *worker, o *op, result value) radii {
	_, r := w.balls(&o.in[0])
	out := make([]float64, len(result.f))
	for i, f := range result.f {
		out[i] = at(r, i) + math.Abs(float64(f))*8*roundoff
	}
	return radii{of: out}
}
