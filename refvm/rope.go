package refvm

import (
	"math"

	ops "amkc/ir/op"
)

var rotations = kernelTable{ops.ROPE: rope}

// rope turns pairs of elements of q and k by an angle that grows with the position and falls with the pair's number, so
// that a product of a query and a key depends on their distance.
func rope(w *worker, o *op) error {
	hd := o.src.IntAt("head_dim", 0, 0)
	if hd < 2 || hd%2 != 0 {
		return w.misfit(o, "has head_dim %d, want an even number", hd)
	}
	if o.src.IntAt("order", 0, 0) == 0 {
		return ropeHalves(w, o, hd)
	}
	return ropePairs(w, o, hd)
}

// ropePairs turns neighbours: each row of x holds elements first, first+1, … of a vector of heads in pair order, those
// from limit on (of v) pass through, and so do the pairs of a head that have no frequency. A row is turned by a
// position of its own.
func ropePairs(w *worker, o *op, hd int) error {
	x, inv := w.floats(&o.in[0]), w.floats(&o.in[1])
	if len(inv) < 1 || len(inv) > hd/2 {
		return w.misfit(o, "has %d frequencies, want 1 to %d for head_dim %d", len(inv), hd/2, hd)
	}
	n, rows := w.last(&o.in[0]), w.rows(&o.in[0])
	if n%2 != 0 {
		return w.misfit(o, "has rows of %d elements, want rotation pairs", n)
	}
	if err := w.numbers(o, n); err != nil {
		return err
	}
	first := o.src.IntAt("first", 0, 0)
	turned := max(0, min(n, o.src.IntAt("limit", 0, first+n)-first))
	if first%2 != 0 || turned%2 != 0 {
		return w.misfit(o, "turns %d elements from row %d on, want whole pairs", turned, first)
	}
	if rows > 1 && !o.src.Has("pos") {
		return w.misfit(o, "has %d rows, want the position of each", rows)
	}
	out, scale := w.alloc(len(x)), stretch(o)
	copy(out, x)
	for b := range rows {
		w.spend(n)
		pos, to := float32(w.ofRow(o, "pos", b, w.at[0])), out[b*n:(b+1)*n]
		for i := 0; i < turned; i += 2 {
			if pair := (first + i) % hd / 2; pair < len(inv) {
				to[i], to[i+1] = turn(to[i], to[i+1], pos*inv[pair], scale)
			}
		}
	}
	return w.emit(o, out, n)
}

// ropeHalves turns element j of each head with element j+hd/2. x is [B, heads, hd], the second operand the B positions.
func ropeHalves(w *worker, o *op, hd int) error {
	x := w.floats(&o.in[0])
	positions, ints := w.bits(&o.in[1])
	batch := len(positions)
	if batch == 0 || len(x)%batch != 0 || len(x)/batch%hd != 0 {
		return w.misfit(o, "has %d elements for %d positions, want whole heads of %d for each", len(x), batch, hd)
	}
	if len(x) == 0 { // whatever head_dim is, there is no frequency to compute
		return w.emit(o, nil, hd)
	}
	theta := o.src.FloatOr("theta", 10000)
	half, out, scale := hd/2, w.alloc(len(x)), stretch(o)
	for j := range half {
		w.spend(len(x) / hd)
		inv := float32(1 / math.Pow(theta, float64(2*j)/float64(hd)))
		for at := 0; at < len(x); at += hd {
			pos := float32(integer(positions, ints, at/(len(x)/batch)))
			out[at+j], out[at+j+half] = turn(x[at+j], x[at+j+half], pos*inv, scale)
		}
	}
	return w.emit(o, out, hd)
}

// stretch is what a rotation multiplies cos and sin by.
func stretch(o *op) float32 { return float32(o.src.FloatOr("scale", 1)) }

// turn turns (x, y) by an angle in radians, and multiplies the result by a scale.
func turn(x, y, angle, scale float32) (float32, float32) {
	sin, cos := math.Sincos(float64(angle))
	s, c := float32(sin)*scale, float32(cos)*scale
	return x*c - y*s, y*c + x*s
}
