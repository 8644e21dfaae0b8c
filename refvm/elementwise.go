package refvm

import (
	"math"

	ops "amkc/ir/op"
)

var elementwise = kernelTable{
	ops.NOP:         nop,
	ops.COPY:        copyElements,
	ops.SiluMul:     gated(silu),
	ops.GeluTanhMul: gated(geluTanh),
	ops.GELU:        pointwise(gelu),
	ops.GeluTanh:    pointwise(geluTanh),
	ops.ReLU:        pointwise(relu),
	ops.ReLU2:       pointwise(reluSquared),
	ops.XIELU:       xielu,
	ops.ADD:         add,
	ops.MUL:         mul,
	ops.SOFTMAX:     softmax,
	ops.ALLREDUCE:   allreduce,
	ops.SoftCap:     withBound(bounded),
	ops.Clip:        withBound(func(x, bound float32) float32 { return max(-bound, min(x, bound)) }),
}

func nop(*worker, *op) error { return nil }

// copyElements is out = in; integers stay exact.
func copyElements(w *worker, o *op) error {
	elems, ints := w.bits(&o.in[0])
	if ints {
		out := w.alloc(len(elems))
		copy(out, elems)
		for k := range o.out {
			if err := w.put(o, &o.out[k], value{f: out, ints: true, last: w.last(&o.in[0])}); err != nil {
				return err
			}
		}
		return nil
	}
	return w.emit(o, w.times(w.floats(&o.in[0]), 1), w.last(&o.in[0]))
}

// pair returns two operands of the same size.
func (w *worker) pair(o *op) (x, y []float32, err error) {
	x, y = w.floats(&o.in[0]), w.floats(&o.in[1])
	if len(x) != len(y) {
		return nil, nil, w.misfit(o, "has operands of %d and %d elements, want the same number", len(x), len(y))
	}
	return x, y, nil
}

// add is x + y: a residual connection, or one row, a bias, for each row of x.
func add(w *worker, o *op) error {
	x, y, n := w.floats(&o.in[0]), w.floats(&o.in[1]), w.last(&o.in[0])
	if len(y) != len(x) && len(y) != n {
		return w.misfit(o, "has operands of %d and %d elements, want the same number, or one row of %d", len(x), len(y),
			n)
	}
	out := w.alloc(len(x))
	for i := range out {
		out[i] = x[i] + y[i%len(y)]
	}
	return w.emit(o, out, n)
}

// mul is x * y, or x * scale.
func mul(w *worker, o *op) error {
	last := w.last(&o.in[0])
	if len(o.in) == 1 {
		return w.emit(o, w.times(w.floats(&o.in[0]), float32(o.src.FloatOr("scale", 1))), last)
	}
	x, y, err := w.pair(o)
	if err != nil {
		return err
	}
	out := w.alloc(len(x))
	for i := range out {
		out[i] = x[i] * y[i]
	}
	return w.emit(o, out, last)
}

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

// allreduce sums its operands in their order.
func allreduce(w *worker, o *op) error {
	out := w.times(w.floats(&o.in[0]), 1)
	for k := range o.in[1:] {
		x := w.floats(&o.in[k+1])
		if len(x) != len(out) {
			return w.misfit(o, "has operands of %d and %d elements, want the same number", len(out), len(x))
		}
		for i, f := range x {
			out[i] += f
		}
	}
	return w.emit(o, out, w.last(&o.in[0]))
}

// softmax runs over the last dimension.
func softmax(w *worker, o *op) error {
	x, n := w.floats(&o.in[0]), w.last(&o.in[0])
	if len(x) == 0 {
		return w.emit(o, nil, n)
	}
	out := w.alloc(len(x))
	for at := 0; at < len(x); at += n {
		row, to := x[at:at+n], out[at:at+n]
		top, sum := maximum(row), float32(0)
		for i, f := range row {
			to[i] = exp(f - top)
			sum += to[i]
		}
		for i := range to {
			to[i] /= sum
		}
	}
	return w.emit(o, out, n)
}

func maximum(x []float32) float32 {
	top := float32(math.Inf(-1))
	for _, f := range x {
		top = max(top, f)
	}
	return top
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }
