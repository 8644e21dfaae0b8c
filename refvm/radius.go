package refvm

import (
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/half"
	ops "amkc/ir/op"
)

// With Options.Radii the VM knows of each value how far that of a correct kernel may be from it: a radius. Each op has
// a rule that derives the radii of its result from its operands and theirs. Sums may be added up in any order,
// functions have the errors that CUDA documents, and what is rounded to 16 bits may be rounded the other way if it is
// closer to the middle of two neighbours than its radius. Where all of that is exact the radius is 0: sums whose terms
// have few enough bits are the same in any order.
//
// A buffer may be given the values that the kernel has published. What is computed from it then starts at the
// kernel's own values, with radii of 0, so that an error shows in the stage that makes it, and in no later one.

// Two kernels of one source add in the same order, so they give the same bits where no function is approximate. With
// Options.SameSums each rule is applied a second time, with exact sums, so that functions alone have errors: two such
// kernels with the same inputs may differ by twice this second radius. Rounded values are equal if the first radius
// leaves one number to round to.

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

// Radii are the rules of all ops whose results stages publish: finishers and others.
var Radii = append(radiiOfFinishers, []Radius{
	{ops.EMBED, "0: elements of a table, times a number, rounded once", nothing},
	{ops.ADD, "0 where both operands are exact; else 2u of the sum, 4u with a factor", ofSum},
	{ops.ALLREDUCE, "0 where all operands are exact; else 2u of the magnitudes for each addition", ofAllReduce},
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
	{ops.ATTENTION, "of a score (hd/4 + 16)u of its magnitudes, on tensor cores 22·hd/16 more, and 4u; of a " +
		"probability that, 2 ulp of exp2, as much for each 16 rows and 8 times more, and two roundings to 16 bits; " +
		"of sums over n rows (n/4 + 8)u, on tensor cores 22·n/16 more; 2 ulp of the quotient; " +
		"with one row, these 2 ulp alone",
		ofAttention},
	{ops.AttentionCombine, "2 ulp of exp2 and 6u of the maxima, for each part; 2 ulp of the quotient", ofCombine},
	{ops.SOFTMAX, "of a power of e 4 ulp and 2u of its exponent; that of all in their sum, and (n + 4)u", ofSoftmax},
	{ops.SIGMOID, "a quarter of the operand's, 4 ulp and 4u", ofSigmoid},
	{ops.TOPK, "0", ofTopK},
	{ops.RENORMALISE, "(n + 2)u", ofRenormalise},
	{ops.SELECTED, "as GEMV_TILE, of each matrix; 4u with a bias, or if n are weighed and added up 4n·u of " +
		"the magnitudes of both", ofSelected},
	{ops.SumRows, "0 where the sum is exact; else 2u of the magnitudes for each addition", ofSumRows},
	{ops.ShortConv, "0 where all operands are exact; else 4(k + 1)u of the magnitudes of terms and result",
		ofShortConv},
	{ops.StateConv, "as SHORT_CONV; of what is kept, 0", ofStateConv},
	{ops.SILU, "as SILU_MUL", ofPointwise(silu, siluError)},
	{ops.L2NORM, "half the error of the sum of squares, (n/8 + n/32 + 19)u of it, twice 2 ulp of rsqrtf and 8u",
		ofL2Norm},
	{ops.DECAY, "4 ulp and 6u of the logarithm, 2 ulp of each power of e, and 4u", ofDecay},
	{ops.RECURRENCE, "2(n + 4)u of the magnitudes of the terms of each sum, and 4u of each element, state and " +
		"pending rows too", ofRecurrence},
	{ops.ScaleBlocks, "0 where both operands and the product are exact; else 2u", ofScaleBlocks},
}...)

var radiusOf = func() map[ir.Opcode]*Radius {
	all := map[ir.Opcode]*Radius{}
	for i := range Radii {
		all[ir.Opcode(Radii[i].Op.Code)] = &Radii[i]
	}
	return all
}()

// radii are those of a result: of its elements, and relative ones of the factors of its rows. nil stands for zeros.
type radii struct {
	of, scales []float64
	same       *radii  // those of kernels with the same sums; nil: zeros
	more       []radii // of further outputs; nil: as the first
}

// pick returns the radii for which the current rule is applied: of any order, or of kernels with the same sums.
func (w *worker) pick(r radii) radii {
	switch {
	case !w.same:
		return r
	case r.same == nil:
		return radii{}
	}
	return *r.same
}

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
	return w.applied(x, scales), w.scaledRadii(x, scales, r, w.pick(w.temps[o.slot].radii).scales)
}

// scaledRadii are the radii of elements times the factors of their rows, with the radii of both.
func (w *worker) scaledRadii(x, scales []float32, r, rel []float64) []float64 {
	out, n := make([]float64, len(x)), len(x)/max(1, len(scales))
	for i, f := range x {
		scale := math.Abs(float64(scales[i/n]))
		out[i] = scale * at(r, i)
		if e := at(rel, i/n); e > 0 || out[i] > 0 || !w.isFloat(float64(f)*float64(scales[i/n])) {
			out[i] += math.Abs(float64(f)) * scale * (e + 2*roundoff)
		}
	}
	return out
}

// appliedRadii are the radii of a value whose factors of rows are applied.
func (w *worker) appliedRadii(v value) radii {
	applied := radii{of: w.scaledRadii(v.f, v.scales, v.radii.of, v.radii.scales)}
	if same := v.radii.same; same != nil {
		w.same = true
		applied.same = &radii{of: w.scaledRadii(v.f, v.scales, same.of, same.scales)}
		w.same = false
	}
	return applied
}

// radiiOf returns the radii of an operand's elements, without the factors of rows.
func (w *worker) radiiOf(o *operand) []float64 {
	if o.st == nil {
		return w.pick(w.temps[o.slot].radii).of
	}
	of := o.st.radius
	if w.same {
		of = o.st.same
	}
	if of == nil || o.n == 0 {
		return nil
	}
	out := make([]float64, 0, o.n)
	var idx [ir.MaxRank]int
	for {
		lo := o.offset(&idx)
		out = append(out, of[lo:lo+o.run]...)
		if !o.next(&idx) {
			return out
		}
	}
}

// isFloat reports whether float32 has a number.
func isFloat(f float64) bool { return float64(float32(f)) == f }

// isFloat reports whether rounding a number to float32 makes no difference: kernels with the same sums round alike.
func (w *worker) isFloat(f float64) bool { return w.same || isFloat(f) }

// wide returns the radii of an operand as they are for any order.
func (w *worker) wide(o *operand) []float64 {
	same := w.same
	w.same = false
	defer func() { w.same = same }()
	_, r := w.balls(o)
	return r
}

// rounded is the radius of f after it was rounded to a type, of e before, where any order has the radius wide.
func (w *worker) rounded(t ir.DType, f float32, e, wide float64) float64 {
	round := rounderFor(w.vm.opts.Round, t)
	if !w.same {
		return round.radius(f, e)
	}
	return round.halfApart(t, f, e, wide)
}

// halfApart is half of how far two values may be apart after they were rounded.
func (r rounder) halfApart(t ir.DType, f float32, e, wide float64) float64 {
	if e == 0 || r == nil {
		return e
	}
	if lo, hi := r.reach(f, wide); lo == hi {
		return 0
	}
	return e + Ulp(t, math.Abs(float64(f))+wide)/2
}

// Ulp is the distance between adjacent numbers of a type at a magnitude.
func Ulp(t ir.DType, f float64) float64 {
	digits, least := 24, -126
	switch t {
	case ir.BF16:
		digits = 8
	case ir.F16:
		digits, least = 11, -14
	}
	_, e := math.Frexp(f)
	if f == 0 {
		e = least
	}
	return math.Ldexp(1, max(e-1, least)-digits+1)
}

// bound derives the radii of an op's result, which it has not written anywhere yet.
func (w *worker) bound(o *op, result value) {
	w.bounded, w.result = true, radii{}
	if rule := radiusOf[o.src.Code]; rule != nil && !result.ints {
		w.result = known(rule.of(w, o, result))
		if w.vm.opts.SameSums {
			w.same = true
			same := known(rule.of(w, o, result))
			w.result.same, w.same = &same, false
			for k := range w.result.more {
				w.result.more[k].same = &same.more[k]
			}
		}
	}
}

// known puts no bound where a rule has none: of an infinity times 0.
func known(r radii) radii {
	for _, all := range [][]float64{r.of, r.scales} {
		for i, e := range all {
			if e != e {
				all[i] = math.Inf(1)
			}
		}
	}
	return r
}

// A tracked buffer has, for each element, how far a correct kernel may be from them.
type tracked struct {
	radius []float64 // of the elements as they are
	exact  []float32 // what was written before it was rounded
	around []float64 // the radius of that
	given  []float32 // what the kernel has published instead; nil: nothing

	same  []float64 // the radius for kernels with the same sums; nil: not known
	apart []float64 // of what was written, and not of what was given
}

func (t *tracked) allocate(n int, same bool) {
	t.radius, t.exact, t.around = make([]float64, n), make([]float32, n), make([]float64, n)
	if same {
		t.same, t.apart = make([]float64, n), make([]float64, n)
	}
}

// track notes what is written from element lo on, with its radii from one of them on, and puts what the kernel has in
// its place.
func (s *store) track(lo int, from []float32, of radii, first int) {
	if s.radius == nil {
		return
	}
	var same []float64
	if of.same != nil {
		same = section(of.same.of, first, len(from))
	}
	r := section(of.of, first, len(from))
	if s.rows != nil {
		copy(s.radius[lo:], s.rows.radii(from, r, r))
		if s.same != nil {
			copy(s.same[lo:], s.rows.radii(from, same, r))
			copy(s.apart[lo:], s.same[lo:lo+len(from)])
		}
		return
	}
	for i, f := range from {
		e := at(r, i)
		s.exact[lo+i], s.around[lo+i] = f, e
		s.radius[lo+i] = s.round.radius(f, e)
		if s.same != nil {
			s.same[lo+i] = s.round.halfApart(s.buf.DType, f, at(same, i), e)
			s.apart[lo+i] = s.same[lo+i]
		}
		if s.given != nil {
			s.data[lo+i], s.radius[lo+i] = s.given[lo+i], 0
			if s.same != nil {
				s.same[lo+i] = 0
			}
		}
	}
}

// Apart returns how far elements of a buffer may be apart, as the last pass wrote it, in two kernels that were given
// the same and add up in the same order: 0 for the same bits. nil if the VM does not know.
func (vm *VM) Apart(name string) []float64 {
	s := vm.mem.byName[name]
	if s == nil || s.apart == nil {
		return nil
	}
	all := make([]float64, len(s.apart))
	for i, half := range s.apart {
		all[i] = 2 * half
	}
	return all
}

// Certain gives all elements of caches and states a radius of 0: the host has written them.
func (vm *VM) Certain() {
	for _, s := range vm.mem.stores {
		if s.buf.Kind.OfSequences() && s.radius != nil {
			clear(s.radius)
			clear(s.same)
			clear(s.apart)
		}
	}
}

// WriteRows sets the rows of a cache of integers, each of which has a scale.
func (vm *VM) WriteRows(name string, integers, scales []float32) error {
	if s := vm.mem.byName[name]; s != nil && s.rows != nil && len(scales) == len(s.rows.scales) {
		copy(s.rows.scales, scales)
		return vm.Write(name, integers)
	}
	return diag.Errorf(CodeBuffer, "buffer "+name, "%d scales; want those of a cache of integers, one for each row",
		len(scales))
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
// wide are their radii for any order, by which it is decided what may be rounded otherwise.
func (s *scaledRows) radii(from []float32, r, wide []float64) []float64 {
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
		for i := lo; i < lo+s.hd; i++ {
			off = max(off, wide[i])
		}
		scale := float64(toIntegers(to, from[lo:lo+s.hd]))
		edge := func(m float64) float64 { return float64(half.RoundBF16(float32(m) / mostInteger)) }
		moves := edge(most-off) != edge(most+off)
		for i := lo; i < lo+s.hd; i++ {
			n := math.Abs(float64(from[i])) / max(scale, leastScale)
			near := math.Abs(n-math.Floor(n)-0.5) <= wide[i]/max(scale, leastScale)+n*2*roundoff
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

// Give replaces the values of a buffer, whenever one is written, by those that the kernel has published. nil ends that.
func (vm *VM) Give(name string, values []float32) bool {
	s := vm.mem.byName[name]
	if s == nil || s.radius == nil || values != nil && len(values) != len(s.data) {
		return false
	}
	s.given = values
	return true
}

// A Reach is the value that the VM has computed for an element, before rounding to the type of its buffer, with its
// radius, and the smallest and the largest value that a correct kernel may publish.
type Reach struct {
	Value  float32
	Radius float64
	Lo, Hi float32
	round  rounder
}

// Off returns a lower bound of how far the value of a kernel was from Value before it was rounded and published.
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

// Reach returns the error bounds of elements of a buffer that the last pass wrote; nil if the VM does not have them.
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
func (m *memory) track(same bool) {
	for _, s := range m.stores {
		kept := s.buf.Kind == ir.Activation || s.buf.Kind == ir.Output || s.buf.Kind == ir.KVCache
		if kept && !s.ints && s.radius == nil {
			s.allocate(len(s.data), same)
		}
	}
}

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
	factor, roundings := 1.0, 2.0
	if len(o.in) == 3 {
		factor, roundings = math.Abs(float64(w.floats(&o.in[2])[0])), 4
	}
	out := make([]float64, len(x))
	for i := range out {
		if out[i] = factor * (at(r, i) + at(s, i%len(y))); out[i] > 0 {
			out[i] += roundings * roundoff * math.Abs(float64(result.f[i]))
		}
	}
	return radii{of: out}
}

// ofAllReduce is for sums of what ranks have, which the VM and kernels add in the same order.
func ofAllReduce(w *worker, o *op, result value) radii {
	out, magnitudes := make([]float64, len(result.f)), make([]float64, len(result.f))
	for k := range o.in {
		x, r := w.balls(&o.in[k])
		for i := range out {
			out[i] += at(r, i)
			magnitudes[i] += math.Abs(float64(x[i]))
		}
	}
	for i := range out {
		if out[i] > 0 {
			out[i] += float64(len(o.in)-1) * 2 * roundoff * magnitudes[i]
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
