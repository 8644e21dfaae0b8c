package refvm

import (
	"math"

	ops "amkc/ir/op"
)

var selecting = kernelTable{ops.ArgMax: argmax}

// argmax chooses the next token of each row greedily: the largest logit, the lowest index among equals. With partial=1
// each SM leaves the value and the index of its own best, or no index if none of its logits is a number; a later argmax
// over those chooses among the SMs. Where nobody has an index the token is 0, as on the device.
func argmax(w *worker, o *op) error {
	x, n := w.floats(&o.in[0]), w.last(&o.in[0])
	if len(o.in) != 2 { // whose elements have indices of their own
		if err := w.numbers(o, n); err != nil {
			return err
		}
	}
	if o.src.IntAt("partial", 0, 0) != 0 {
		if len(o.in) != 1 || len(o.out) != 2 {
			return w.misfit(o, "has %d inputs and %d outputs, want 1 and 2 with partial=1", len(o.in), len(o.out))
		}
		first, rows := o.src.IntAt("first", 0, 0), w.rows(&o.in[0])
		values, indices := w.alloc(rows), w.alloc(rows)
		for b := range rows {
			at, top := best(x[b*n:(b+1)*n], func(i int) int { return first + i })
			values[b], indices[b] = top, fromInt(int32(at))
		}
		if err := w.put(o, &o.out[0], value{f: values, last: rows}); err != nil {
			return err
		}
		return w.put(o, &o.out[1], value{f: indices, ints: true, last: rows})
	}
	if len(x) == 0 {
		return w.misfit(o, "has no values to choose from; with partial=1 it may have none")
	}
	index := func(i int) int { return i }
	var indices []float32
	ints := false
	if len(o.in) == 2 {
		indices, ints = w.bits(&o.in[1])
		if len(indices) != len(x) || w.last(&o.in[1]) != n {
			return w.misfit(o, "has %d values and %d indices, in rows of %d and %d, want as many", len(x), len(indices),
				n, w.last(&o.in[1]))
		}
	}
	result := w.alloc(len(x) / n)
	for b := range result {
		if indices != nil {
			index = func(i int) int { return integer(indices, ints, b*n+i) }
		}
		at, _ := best(x[b*n:(b+1)*n], index)
		if at == noIndex {
			at = 0
		}
		result[b] = fromInt(int32(at))
	}
	for k := range o.out {
		if err := w.put(o, &o.out[k], value{f: result, ints: true, last: len(result)}); err != nil {
			return err
		}
	}
	return nil
}

// noIndex is the index of the best of no numbers.
const noIndex = math.MaxInt32

// numbers refuses an op that counts n elements, from parameter first on, beyond what an element of type I32 can hold.
func (w *worker) numbers(o *op, n int) error {
	if last := o.src.IntAt("first", 0, 0) + n - 1; last >= noIndex {
		return w.misfit(o, "numbers an element %d, want at most %d", last, noIndex-1)
	}
	return nil
}

// best returns the index of the largest element and the element: of no numbers, noIndex and -Inf.
func best(x []float32, index func(int) int) (int, float32) {
	at, top := noIndex, float32(math.Inf(-1))
	for i, f := range x {
		if f > top || f == top && index(i) < at {
			at, top = index(i), f
		}
	}
	return at, top
}
