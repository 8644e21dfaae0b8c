package refvm

import (
	"math"

	ops "amkc/ir/op"
)

var selecting = kernelTable{ops.ArgMax: argmax}

// argmax chooses the next token greedily: the largest logit, the lowest index among equals. With partial=1 each SM
// leaves the value and the index of its own best, or no index if none of its logits is a number; a later argmax over
// those chooses among the SMs. Where nobody has an index the token is 0, as on the device.
func argmax(w *worker, o *op) error {
	x := w.floats(&o.in[0])
	if o.src.IntAt("partial", w.pos, 0) != 0 {
		if len(o.in) != 1 || len(o.out) != 2 {
			return w.misfit(o, "has %d inputs and %d outputs, want 1 and 2 with partial=1", len(o.in), len(o.out))
		}
		first := o.src.IntAt("first", w.pos, 0)
		at, top := best(x, func(i int) int { return first + i })
		result := w.alloc(2)
		result[0], result[1] = top, fromInt(int32(at))
		if err := w.put(o, &o.out[0], value{f: result[:1], last: 1, scale: 1}); err != nil {
			return err
		}
		return w.put(o, &o.out[1], value{f: result[1:], ints: true, last: 1, scale: 1})
	}
	if len(x) == 0 {
		return w.misfit(o, "has no values to choose from; with partial=1 it may have none")
	}
	index := func(i int) int { return i }
	n := w.last(&o.in[0])
	if len(o.in) == 2 {
		indices, ints := w.bits(&o.in[1])
		if len(indices) != len(x) {
			return w.misfit(o, "has %d values and %d indices, want the same number", len(x), len(indices))
		}
		index, n = func(i int) int { return integer(indices, ints, i) }, len(x)
	}
	result := w.alloc(len(x) / n)
	for b := range result {
		at, _ := best(x[b*n:(b+1)*n], index)
		if at == noIndex {
			at = 0
		}
		result[b] = fromInt(int32(at))
	}
	for k := range o.out {
		if err := w.put(o, &o.out[k], value{f: result, ints: true, last: len(result), scale: 1}); err != nil {
			return err
		}
	}
	return nil
}

// noIndex is the index of the best of no numbers.
const noIndex = math.MaxInt32

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
