package refvm

import (
	"math"

	"amkc/ir"
	"amkc/ir/half"
	ops "amkc/ir/op"
)

// A cache of I8 has a scale for each row of K and of V of a head, where the kernel rounds (Device): its elements are
// integers here too. With None it holds float32 as every other buffer does.
const (
	mostInteger = 127
	leastScale  = 0x1p-100 // a row with less is zeros, so that 1/scale is finite
)

// scaledRows are the scales of a buffer's rows.
type scaledRows struct {
	hd     int // elements of a row
	scales []float32
}

func newScaledRows(b *ir.Buffer, r Rounding) *scaledRows {
	if r != Device || !b.ScaledRows() {
		return nil
	}
	hd := b.Shape[len(b.Shape)-1]
	return &scaledRows{hd, make([]float32, b.Numel()/hd)}
}

// set stores whole rows, of which the first begins at element lo of the buffer, in to.
func (s *scaledRows) set(lo int, to, from []float32) {
	for at := 0; at < len(from); at += s.hd {
		s.scales[(lo+at)/s.hd] = toIntegers(to[at:at+s.hd], from[at:at+s.hd])
	}
}

// toIntegers rounds a row to multiples of its scale, which it returns: to nearest, ties to even. The scale is that of
// the largest magnitude over 127, as a BF16. What has an infinity or is not a number is so in all elements.
func toIntegers(to, from []float32) (scale float32) {
	most := uint32(0) // floats of one sign are in the order of their bits, and NaN is last
	for _, f := range from {
		most = max(most, math.Float32bits(f)&^(1<<31))
	}
	scale = half.RoundBF16(math.Float32frombits(most) / mostInteger)
	if scale < leastScale {
		clear(to)
		return 0
	}
	inverse := 1 / scale
	for i, f := range from {
		if to[i] = float32(math.RoundToEven(float64(f * inverse))); to[i] != to[i] {
			to[i] = 0
		}
	}
	return scale
}

// checkScaledRows says what an op does with rows that have scales and may not, or nothing.
func checkScaledRows(o *op) string {
	attends, appends := ir.Ops[o.src.Code] == ops.ATTENTION, ir.Ops[o.src.Code] == ops.KVAppend
	check := func(v *operand, knows bool) string {
		if v.st == nil || !v.st.buf.ScaledRows() {
			return ""
		}
		last := &v.view[len(v.view)-1]
		lo, ok1 := last.Lo.IsConst()
		hi, ok2 := last.Hi.IsConst()
		if !knows || !ok1 || !ok2 || lo != 0 || hi != v.st.buf.Shape[len(v.view)-1] || last.Shared() {
			return "touches rows of " + v.st.buf.Name + ", which have scales; want ATTENTION_TILE or KV_APPEND, and " +
				"whole rows"
		}
		return ""
	}
	for i := range o.in {
		if problem := check(&o.in[i], attends && (i == 1 || i == 2)); problem != "" {
			return problem
		}
	}
	for i := range o.out {
		if problem := check(&o.out[i], appends); problem != "" {
			return problem
		}
	}
	return ""
}

// A row is a key or a value: elements times a scale.
type row struct {
	elements []float32
	scale    float32
}

// ownRows are the rows of a pass, [batch, kvHeads, hd], as they are given and as the cache will have them. Of a cache
// of integers a query sees its own row as later ones will.
type ownRows struct {
	hd            int
	given, cached []float32
	scales        []float32 // nil: there are none
}

func (w *worker) ownRows(o, cache *operand, hd int) ownRows {
	given := w.exchanged(o, cache)
	if cache.st.rows == nil || len(given)%hd != 0 {
		return ownRows{hd: hd, given: given, cached: cache.st.round.all(given)}
	}
	r := ownRows{hd: hd, given: w.alloc(len(given)), scales: w.alloc(len(given) / hd)}
	for at := 0; at < len(given); at += hd {
		r.scales[at/hd] = toIntegers(r.given[at:at+hd], given[at:at+hd])
	}
	r.cached = r.given
	return r
}

// row returns row n of them, as one sees it whose own it is, or as another.
func (r *ownRows) row(n int, own bool) row {
	from, scale := r.cached, float32(1)
	if own {
		from = r.given
	}
	if r.scales != nil {
		scale = r.scales[n]
	}
	return row{from[n*r.hd:][:r.hd], scale}
}

// row returns a row of a cache.
func (w *worker) row(c *cache, b, r, h int) row {
	lo := c.batch[min(b, len(c.batch)-1)] + c.rows[r] + c.heads[h]
	elements := w.read(c.st, lo, c.hd)
	if c.st.rows == nil {
		return row{elements, 1}
	}
	return row{elements, c.st.rows.scales[lo/c.hd]}
}

// weigh adds p times a value to acc, as the kernel does: p is rounded to what rows are, unless it is that of the
// query's own row. Where values are integers, BF16 takes the scale into p before that. F16, whose range is narrow,
// multiplies the elements and rounds these: 1/64 of each by 64 times the scale, which is rounded too.
func (w *worker) weigh(acc []float32, c *cache, p float32, v row, own bool) {
	round, scaled := c.st.round, false
	if c.st.rows != nil {
		round, scaled = rounderFor(w.vm.opts.Round, w.vm.activations), w.vm.activations == ir.F16
	}
	if !scaled {
		p *= v.scale
	}
	if !own {
		p = round.of(p)
	}
	if !scaled {
		accumulate(acc, p, v.elements)
		return
	}
	scale := round(64 * v.scale)
	for i, f := range v.elements[:len(acc)] {
		acc[i] += p * round(f/64*scale)
	}
}
