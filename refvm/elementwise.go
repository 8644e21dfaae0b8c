package refvm

import (
	"math"

	ops "amkc/ir/op"
)

var elementwise = kernelTable{
	ops.NOP:       nop,
	ops.COPY:      copyElements,
	ops.ADD:       add,
	ops.MUL:       mul,
	ops.SOFTMAX:   softmax,
	ops.ALLREDUCE: allreduce,
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

// add is x + y: a residual connection, or one row, a bias, for each row of x; and that times one number, if there is a
// third operand.
func add(w *worker, o *op) error {
	x, y, n := w.floats(&o.in[0]), w.floats(&o.in[1]), w.last(&o.in[0])
	if len(y) != len(x) && len(y) != n {
		return w.misfit(o, "has operands of %d and %d elements, want the same number, or one row of %d", len(x), len(y),
			n)
	}
	factor := []float32{1}
	if len(o.in) == 3 {
		if factor = w.floats(&o.in[2]); len(factor) != 1 {
			return w.misfit(o, "multiplies its sum by %d elements, want one", len(factor))
		}
	}
	out := w.alloc(len(x))
	for i := range out {
		out[i] = (x[i] + y[i%len(y)]) * factor[0]
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

// allreduce sums its operands in their order, or in pairs.
func allreduce(w *worker, o *op) error {
	k := len(o.in)
	inOrder := o.src.IntAt("pairs", 0, 0) == 0
	if !inOrder && k&(k-1) != 0 {
		return w.misfit(o, "has %d operands to add in pairs, want as many as a power of two", k)
	}
	terms := make([][]float32, k)
	for i := range terms {
		terms[i] = w.floats(&o.in[i])
		if len(terms[i]) != len(terms[0]) {
			return w.misfit(o, "has operands of %d and %d elements, want the same number", len(terms[0]), len(terms[i]))
		}
	}
	out, row := w.alloc(len(terms[0])), w.alloc(k)
	for i := range out {
		for t := range row {
			row[t] = terms[t][i]
		}
		if inOrder {
			for _, f := range row[1:] {
				row[0] += f
			}
			out[i] = row[0]
			continue
		}
		out[i] = inPairs(row)
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
