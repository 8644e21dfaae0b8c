package refvm

import (
	"math"

	ops "amkc/ir/op"
)

// What is made of finished rows by ops that are declared with a call (op.Finisher), and how far a correct kernel may be
// from that.
var (
	finishers = kernelTable{
		ops.SiluMul:     gated(silu),
		ops.GeluTanhMul: gated(geluTanh),
		ops.GELU:        pointwise(gelu),
		ops.GeluTanh:    pointwise(geluTanh),
		ops.ReLU:        pointwise(relu),
		ops.ReLU2:       pointwise(reluSquared),
		ops.XIELU:       xielu,
		ops.SoftCap:     withBound(bounded),
		ops.Clip:        withBound(func(x, bound float32) float32 { return max(-bound, min(x, bound)) }),
	}
	radiiOfFinishers = []Radius{
		{ops.SiluMul, "2 ulp of e^-x, in 16 bits 1.173·abs(x) more, as far as it counts in 1 + e^-x; 2 " +
			"ulp of the quotient, 1u in fp32; 4u", ofGated(silu, siluError)},
		{ops.GeluTanhMul, "as SILU_MUL, of x times e^-y, y = 2·sqrt(2/π)(x + 0.044715x³) to 5u",
			ofGated(geluTanh, geluTanhError)},
		{ops.ClampedSiluMul, "as SILU_MUL, of x times e^-y, y = scale·x to 1u; 2u of 1 + up", ofClampedSiluMul},
		{ops.GELU, "2 ulp of erff, of a number up to 2, times half of x; 4u", ofPointwise(gelu, geluError)},
		{ops.GeluTanh, "as GELU_TANH_MUL", ofPointwise(geluTanh, geluTanhError)},
		{ops.ReLU, "0", ofPointwise(relu, exactly)},
		{ops.ReLU2, "0 where the operand is exact", ofPointwise(reluSquared, exactly)},
		{ops.XIELU, "2^-20 of the sum of the magnitudes of what is added up", ofXielu},
		{ops.SoftCap, "2 ulp of tanhf and 3u", ofSoftCap},
		{ops.Clip, "0", ofScale},
	}
)

// gated is an activation of the gate, times up: the middle of the feed-forward network. One operand holds gate and up
// rows interleaved.
func gated(activation func(float32) float32) func(*worker, *op) error {
	return func(w *worker, o *op) error {
		if len(o.in) == 2 {
			gate, up, err := w.pair(o)
			if err != nil {
				return err
			}
			out := w.alloc(len(gate))
			for lo, hi := 0, 0; lo < len(out); lo = hi {
				hi = w.piece(lo, len(out))
				for i := lo; i < hi; i++ {
					out[i] = activation(gate[i]) * up[i]
				}
			}
			return w.emit(o, out, w.last(&o.in[0]))
		}
		both, n := w.floats(&o.in[0]), w.last(&o.in[0])
		if n%2 != 0 {
			return w.misfit(o, "has rows of %d elements, want gate and up interleaved", n)
		}
		out := w.alloc(len(both) / 2)
		for lo, hi := 0, 0; lo < len(out); lo = hi {
			hi = w.piece(lo, len(out))
			for i := lo; i < hi; i++ {
				out[i] = activation(both[2*i]) * both[2*i+1]
			}
		}
		return w.emit(o, out, n/2)
	}
}

func silu(x float32) float32 { return float32(float64(x) / (1 + math.Exp(-float64(x)))) }

// geluTanh is the form of GELU that a tanh approximates it by.
func geluTanh(x float32) float32 {
	f := float64(x)
	return float32(0.5 * f * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(f+0.044715*f*f*f))))
}

// pointwise is a function of each element.
func pointwise(of func(float32) float32) func(*worker, *op) error {
	return func(w *worker, o *op) error {
		x := w.floats(&o.in[0])
		out := w.alloc(len(x))
		for lo, hi := 0, 0; lo < len(x); lo = hi {
			hi = w.piece(lo, len(x))
			for i := lo; i < hi; i++ {
				out[i] = of(x[i])
			}
		}
		return w.emit(o, out, w.last(&o.in[0]))
	}
}

// gelu is x·Φ(x), Φ being the distribution function of the normal distribution.
func gelu(x float32) float32 {
	return float32(0.5 * float64(x) * (1 + math.Erf(float64(x)/math.Sqrt2)))
}

// relu keeps NaNs.
func relu(x float32) float32 {
	if x < 0 {
		return 0
	}
	return x
}

func reluSquared(x float32) float32 { return relu(x) * relu(x) }

// xielu is a square above 0 and an exponential below it, by four numbers that all elements share.
func xielu(w *worker, o *op) error {
	by := w.floats(&o.in[1])
	if len(by) != 4 {
		return w.misfit(o, "has %d numbers besides x, want 4", len(by))
	}
	softplus := func(x float32) float64 { return max(float64(x), 0) + math.Log1p(math.Exp(-math.Abs(float64(x)))) }
	beta, eps := float64(by[2]), float64(by[3])
	above, below := softplus(by[0]), beta+softplus(by[1])
	return pointwise(func(x float32) float32 {
		f := float64(x)
		if f > 0 {
			return float32(above*f*f + beta*f)
		}
		return float32(below*(math.Expm1(min(f, eps))-f) + beta*f)
	})(w, o)
}

// withBound is a function of each element and of a bound.
func withBound(of func(x, bound float32) float32) func(*worker, *op) error {
	return func(w *worker, o *op) error {
		bound := float32(o.src.FloatOr("cap", 0))
		return pointwise(func(x float32) float32 { return of(x, bound) })(w, o)
	}
}

// bounded is cap·tanh(x/cap).
func bounded(x, bound float32) float32 { return bound * float32(math.Tanh(float64(x/bound))) }

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

// ofClampedSiluMul is as a gated activation has it, of bounded numbers: no bound moves one further from another.
func ofClampedSiluMul(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	of, bound := boundedGate(o)
	scale := o.src.FloatOr("scale", 1)
	out := make([]float64, len(result.f))
	for i := range out {
		gate, up, upOff := x[2*i], float64(max(-bound, min(x[2*i+1], bound)))+1, at(r, 2*i+1)
		a := math.Abs(float64(of(gate)))
		y := scale * float64(min(gate, bound))
		e := around(of, gate, at(r, 2*i)) + a*sigmoidError(y, math.Abs(y)*roundoff, w.onTensorCores())
		if out[i] = e*(math.Abs(up)+upOff) + a*upOff; out[i] > 0 {
			out[i] += 4 * roundoff * math.Abs(float64(result.f[i]))
		}
	}
	return radii{of: out}
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
