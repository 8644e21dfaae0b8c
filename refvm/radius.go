package refvm

import (
	"math"

	"amkc/ir"
	"amkc/ir/half"
	ops "amkc/ir/op"
)

// With Options.Radii the VM knows of each value how far that of a correct kernel may be from it: a radius. Each op has
// a rule that derives the radii of its result from its operands and theirs. Sums may be added up in any order,
// functions have the errors that CUDA documents, and what is rounded to 16 bits may be rounded the other way if it is
// closer to the middle of two neighbours than its radius. Where all of that is exact the radius is 0: sums whose terms
// have few enough bits are the same in any order.
//
// A buffer may be given the values that the kernel has handed over. What is computed from it then starts at the
// kernel's own values, with radii of 0, so that an error shows in the stage that makes it, and in no later one.

// roundoff is the largest relative error of one rounding to float32, and twoUlp what CUDA documents of most functions.
const (
	roundoff = 0x1p-24
	twoUlp   = 0x1p-22
)

// A Radius is the rule of an op.
type Radius struct {
	Op *ops.Spec
	// Says is what the rule is made of, as docs/explore-arithmetic.md has it. u is 2^-24, k the number of terms.
	Says string
	of   func(w *worker, o *op, result value) radii
}

// Radii are the rules of all ops that yield what stages hand over.
var Radii = []Radius{
	{ops.EMBED, "0: elements of a table, times a number, rounded once", nothing},
	{ops.ADD, "0 where both operands are exact; else 2u of the sum", ofSum},
	{ops.COPY, "0", passed},
	{ops.KVAppend, "0, and what rounding to the cache makes of the operand's radius", passed},
	{ops.RMSNORM, "half the error of the mean square, (n/8 + n/32 + 19)u of it, 2 ulp of rsqrtf and 5u; 0 where " +
		"the squares add up exactly to a mean that is a power of 4", ofRMSNorm},
	{ops.LAYERNORM, "the errors of two sums, (n/8 + n/32 + 19)u of the sums of magnitudes and of squares, over the " +
		"deviation; 2 ulp of rsqrtf and 6u", ofLayerNorm},
	{ops.GEMV, "of the sum of the magnitudes of the terms: (k/8 + 3)u for the VM and (k/32 + 16)u for the kernel, " +
		"or 6 roots of both together; on tensor cores, which cut, for each 128 columns 22u of the result " +
		"and 12 roots of the sum of the squares; 0 where all terms are multiples of a number of which " +
		"their magnitudes add up to less than 2^24", ofGEMV},
	{ops.GEMM, "as GEMV_TILE", ofGEMV},
	{ops.ROPE, "2 ulp of sin and cos, each, and 3u; 0 where the angle is", ofRope},
	{ops.MUL, "0 where the operand is exact; else 2u", ofScale},
	{ops.SiluMul, "2 ulp of e^-x, in 16 bits 1.173·abs(x) more, as far as it counts in 1 + e^-x; 2 " +
		"ulp of the quotient, 1u in fp32; 4u", ofGated(silu, siluError)},
	{ops.GeluTanhMul, "as SILU_MUL, of x times e^-y, y = 2·sqrt(2/π)(x + 0.044715x³) to 5u",
		ofGated(geluTanh, geluTanhError)},
	{ops.GELU, "2 ulp of erff, of a number up to 2, times half of x; 4u", ofPointwise(gelu, geluError)},
	{ops.GeluTanh, "as GELU_TANH_MUL", ofPointwise(geluTanh, geluTanhError)},
	{ops.ReLU, "0", ofPointwise(relu, exactly)},
	{ops.ReLU2, "0 where the operand is exact", ofPointwise(reluSquared, exactly)},
	{ops.XIELU, "2^-20 of the sum of the magnitudes of what is added up", ofXielu},
	{ops.SoftCap, "2 ulp of tanhf and 3u", ofSoftCap},
	{ops.Clip, "0", ofScale},
	{ops.ATTENTION, "of a score (hd/4 + 16)u of its magnitudes, on tensor cores 22·hd/16 more, and 4u; of a " +
		"probability that, 2 ulp of exp2, as much for each 16 rows and 8 times more, and two roundings to 16 bits; " +
		"of sums over n rows (n/4 + 8)u, on tensor cores 22·n/16 more; 2 ulp of the quotient. Of one row alone, that",
		ofAttention},
	{ops.AttentionCombine, "2 ulp of exp2 and 6u of the maxima, for each part; 2 ulp of the quotient", ofCombine},
}

var radiusOf = func() map[ir.Opcode]*Radius {
	all := map[ir.Opcode]*Radius{}
	for i := range Radii {
		all[ir.Opcode(Radii[i].Op.Code)] = &Radii[i]
	}
	return all
}()

// radii are those of a result: of its elements, and relative ones of the factors of its rows. nil stands for zeros.
type radii struct{ of, scales []float64 }

// at returns a radius of a list, of which nil are zeros.
func at(r []float64, i int) float64 {
	if r == nil {
		return 0
	}
	return r[i]
}

// balls returns an operand as numbers, as floats does, and their radii.
func (w *worker) balls(o *operand) ([]float32, []float64) {
	x, scales := w.scaled(o)
	r := w.radiiOf(o)
	if scales == nil {
		return x, r
	}
	rel := w.temps[o.slot].radii.scales
	out, n := make([]float64, len(x)), len(x)/max(1, len(scales))
	for i, f := range x {
		scale := math.Abs(float64(scales[i/n]))
		out[i] = scale * at(r, i)
		if e := at(rel, i/n); e > 0 || out[i] > 0 || !isFloat(float64(f)*float64(scales[i/n])) {
			out[i] += math.Abs(float64(f)) * scale * (e + 2*roundoff)
		}
	}
	return w.applied(x, scales), out
}

// radiiOf returns the radii of an operand's elements, without the factors of rows.
func (w *worker) radiiOf(o *operand) []float64 {
	if o.st == nil {
		return w.temps[o.slot].radii.of
	}
	if o.st.radius == nil || o.n == 0 {
		return nil
	}
	out := make([]float64, 0, o.n)
	var idx [ir.MaxRank]int
	for {
		lo := o.offset(&idx)
		out = append(out, o.st.radius[lo:lo+o.run]...)
		if !o.next(&idx) {
			return out
		}
	}
}

// isFloat reports whether float32 has a number.
func isFloat(f float64) bool { return float64(float32(f)) == f }

// bound derives the radii of an op's result, which it has not written anywhere yet.
func (w *worker) bound(o *op, result value) {
	w.bounded, w.result = true, radii{}
	if rule := radiusOf[o.src.Code]; rule != nil && !result.ints {
		w.result = rule.of(w, o, result)
		for _, all := range [][]float64{w.result.of, w.result.scales} {
			for i, r := range all {
				if r != r { // of an infinity times 0: nothing is known
					all[i] = math.Inf(1)
				}
			}
		}
	}
}

// A tracked buffer has, beside its elements, how far a correct kernel may be from them.
type tracked struct {
	radius []float64 // of the elements as they are
	exact  []float32 // what was written before it was rounded
	around []float64 // the radius of that
	given  []float32 // what the kernel has handed over instead; nil: nothing
}

func (t *tracked) allocate(n int) {
	t.radius, t.exact, t.around = make([]float64, n), make([]float32, n), make([]float64, n)
}

// track notes what is written from element lo on, with the first of its radii, and puts what the kernel has in its
// place. It returns the radii.
func (s *store) track(lo int, from []float32, r []float64) []float64 {
	switch {
	case s.radius == nil:
		return r
	case s.rows != nil:
		copy(s.radius[lo:], s.rows.radii(from, r))
		return r
	}
	for i, f := range from {
		e := at(r, i)
		s.exact[lo+i], s.around[lo+i] = f, e
		s.radius[lo+i] = s.round.radius(f, e)
		if s.given != nil {
			s.data[lo+i], s.radius[lo+i] = s.given[lo+i], 0
		}
	}
	return r
}

// reach returns the values that are e around f and furthest from it, as they are rounded.
func (r rounder) reach(f float32, e float64) (lo, hi float32) {
	if e == 0 {
		return r.of(f), r.of(f)
	}
	down, up := float32(math.Inf(-1)), float32(math.Inf(1))
	return r.of(math.Nextafter32(float32(float64(f)-e), down)), r.of(math.Nextafter32(float32(float64(f)+e), up))
}

// radius is that of f rounded, if it was e before.
func (r rounder) radius(f float32, e float64) float64 {
	if e == 0 || r == nil {
		return e
	}
	lo, hi := r.reach(f, e)
	v := float64(r.of(f))
	return max(v-float64(lo), float64(hi)-v)
}

// radii are those of rows of integers, in values: rounding may take an element to another integer, and a scale to
// another BF16.
func (s *scaledRows) radii(from []float32, r []float64) []float64 {
	out := make([]float64, len(from))
	if r == nil {
		return out
	}
	to := make([]float32, s.hd)
	for lo := 0; lo < len(from); lo += s.hd {
		most, off := 0.0, 0.0
		for i := lo; i < lo+s.hd; i++ {
			most, off = max(most, math.Abs(float64(from[i]))), max(off, r[i])
		}
		if off == 0 {
			continue
		}
		scale := float64(toIntegers(to, from[lo:lo+s.hd]))
		edge := func(m float64) float64 { return float64(half.RoundBF16(float32(m) / mostInteger)) }
		moves := edge(most-off) != edge(most+off)
		for i := lo; i < lo+s.hd; i++ {
			n := math.Abs(float64(from[i])) / max(scale, leastScale)
			near := math.Abs(n-math.Floor(n)-0.5) <= r[i]/max(scale, leastScale)+n*2*roundoff
			switch {
			case moves: // by one unit of a BF16, with which the integer is another one too
				out[i] = r[i] + scale + math.Abs(float64(from[i]))*0x1p-7
			case near:
				out[i] = scale
			}
		}
	}
	return out
}

// Give puts what the kernel has handed over in the place of a buffer's values, whenever one is written. nil takes it
// back.
func (vm *VM) Give(name string, values []float32) bool {
	s := vm.mem.byName[name]
	if s == nil || s.radius == nil || values != nil && len(values) != len(s.data) {
		return false
	}
	s.given = values
	return true
}

// A Reach is what the VM has made of an element, before it was rounded to its buffer's type, its radius, and the least
// and the largest value that a correct kernel may hand over.
type Reach struct {
	Value  float32
	Radius float64
	Lo, Hi float32
	round  rounder
}

// Off returns how far what a kernel hands over was from Value, at least, before it was rounded.
func (r *Reach) Off(got float32) float64 {
	switch {
	case got == r.round.of(r.Value):
		return 0
	case r.round == nil:
		return math.Abs(float64(got) - float64(r.Value))
	}
	next := r.round.towards(got, r.Value)
	return math.Abs((float64(got)+float64(next))/2 - float64(r.Value)) // from the middle of the two
}

// Reach returns how far elements of a buffer reach, as the last pass wrote it; nil if the VM does not know.
func (vm *VM) Reach(name string) []Reach {
	s := vm.mem.byName[name]
	if s == nil || s.exact == nil || s.rows != nil {
		return nil
	}
	all := make([]Reach, len(s.exact))
	for i, f := range s.exact {
		all[i] = Reach{Value: f, Radius: s.around[i], round: s.round}
		all[i].Lo, all[i].Hi = s.round.reach(f, s.around[i])
	}
	return all
}

// towards returns the neighbour of a rounded value on the side of f.
func (r rounder) towards(got, f float32) float32 {
	next := got
	for step := math.Abs(float64(got))*0x1p-12 + 0x1p-149; next == got && step < math.MaxFloat32; step *= 2 {
		if f < got {
			next = r(float32(float64(got) - step))
		} else {
			next = r(float32(float64(got) + step))
		}
	}
	return next
}

// track makes room for radii of what steps write.
func (m *memory) track() {
	for _, s := range m.stores {
		kept := s.buf.Kind == ir.Activation || s.buf.Kind == ir.Output || s.buf.Kind == ir.KVCache
		if kept && !s.ints && s.radius == nil {
			s.allocate(len(s.data))
		}
	}
}
