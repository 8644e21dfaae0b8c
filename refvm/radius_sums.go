package refvm

import (
	"math"
	"math/bits"

	"amkc/ir"
	"amkc/ir/format"
)

// A sum is what is known of the terms of a sum, whatever their order.
type sum struct {
	n         int
	value     float64
	magnitude float64 // the sum of the magnitudes
	squares   float64
	lowest    int // the exponent of the lowest bit that any has
}

func newSum() sum { return sum{lowest: math.MaxInt} }

// add adds a term, which float64 has to the last bit.
func (s *sum) add(t float64) {
	s.n++
	if t == 0 {
		return
	}
	s.value += t
	s.magnitude += math.Abs(t)
	s.squares += t * t
	b := math.Float64bits(t)
	exponent, mantissa := int(b>>52&0x7ff), b&(1<<52-1)
	if exponent == 0 {
		exponent = 1
	} else {
		mantissa |= 1 << 52
	}
	s.lowest = min(s.lowest, exponent-1075+bits.TrailingZeros64(mantissa))
}

// exact reports whether float32 adds the terms up without rounding, in any order, and in steps that cut as tensor cores
// do: all of them are multiples of a number, of which their magnitudes are less than 2^24 together.
func (s *sum) exact() bool {
	return s.magnitude == 0 || s.magnitude < math.Ldexp(1, s.lowest+24) && s.lowest >= -126
}

// inOrder bounds the number of roundings that a sum suffers which is added up along chains of a length. Roundings to
// nearest prefer no sign: of many, 6 roots of their number are not exceeded but once in 10^7 times.
func inOrder(chain int) float64 { return min(float64(chain), 6*math.Sqrt(float64(chain))) }

// radius is that of the sum if both add up along chains of the lengths that bodies have: the VM of an eighth of the
// terms, the kernel of a thread's share and then over lanes and warps.
func (s *sum) radius() float64 {
	if s.exact() {
		return 0
	}
	return roundoff * s.magnitude * inOrder(s.n/8+3+s.n/32+16)
}

// stepCuts is what one mma of 16 products cuts, in roundoffs of the largest term: of two steps of 8 products and a sum
// all 9 terms to 24 bits below it, and the sum to 24 bits. One step of 17 terms and 25 bits cuts less.
const stepCuts = 22

// cuts are what tensor cores cut of sums of n products besides: a warp takes one mma of a row for each 128 columns,
// and adds up in four accumulators. The largest term of a step is one of these, as a rule: as large as random signs
// make it, 6 deviations next to the whole.
func (s *sum) cuts() float64 {
	if s.exact() {
		return 0
	}
	largest := min(s.magnitude, math.Abs(s.value)+12*math.Sqrt(s.squares))
	return roundoff * largest * stepCuts * float64((s.n+digitColumns-1)/digitColumns)
}

// onTensorCores reports whether a kernel may multiply by tensor cores: it publishes values of 16 bits.
func (w *worker) onTensorCores() bool { return w.vm.activations.Bits() == 16 }

func ofGEMV(w *worker, o *op, result value) radii {
	x, scales := w.scaled(&o.in[0])
	r, k := w.radiiOf(&o.in[0]), w.last(&o.in[1])
	var relative []float64
	if scales != nil {
		relative = w.pick(w.temps[o.in[0].slot].radii).scales
	}
	if w.last(&o.in[0]) != k {
		x, r = w.balls(&o.in[0])
		scales, relative = nil, nil
	}
	wide := r
	if w.same {
		w.same = false
		wide = w.radiiOf(&o.in[0])
		w.same = true
	}
	matrix := w.floats(&o.in[1])
	rows, n := len(x)/k, len(matrix)/k
	quantised := o.src.Has("qdtype") && len(o.in) > 2
	var bias []float32
	var q groups
	if quantised {
		var err error
		if q, err = w.groups(o, n, k, o.in[2:]); err != nil {
			return radii{}
		}
	} else if len(o.in) == 3 {
		bias = w.floats(&o.in[2])
	}
	out := make([]float64, rows*n)
	for b := range rows {
		vector := w.multiplied(&o.in[1], x[b*k:(b+1)*k], section(r, b*k, k), section(wide, b*k, k))
		for j := range n {
			y, e := vector.times(matrix[j*k:(j+1)*k], &q, j, w.onTensorCores())
			if scales != nil {
				scale := float64(scales[b])
				scaled := y * scale
				inexact := at(relative, b)
				if e *= math.Abs(scale); e > 0 || inexact > 0 || !w.isFloat(scaled) {
					e += math.Abs(scaled) * (inexact + 2*roundoff)
				}
				y = scaled
			}
			if bias != nil {
				if y += float64(bias[j]); e > 0 {
					e += 2 * roundoff * math.Abs(y)
				}
			}
			out[b*n+j] = e
		}
	}
	return radii{of: out}
}

// section is n radii of a list from one on.
func section(r []float64, from, n int) []float64 {
	if r == nil {
		return nil
	}
	return r[from : from+n]
}

// A multiplied vector is one as a matrix is multiplied by it: its elements and their radii, and for a matrix of
// integers these as digits.
type multiplied struct {
	x     []float64
	r     []float64
	first int       // column of the matrix that it begins at
	scale []float64 // of each 128 columns; nil: no digits
	same  bool      // sums are added up as they are
}

// multiplied makes one of elements and their radii, and those that they have for any order.
func (w *worker) multiplied(matrix *operand, x []float32, r, wide []float64) multiplied {
	m := multiplied{x: make([]float64, len(x)), r: make([]float64, len(x)), same: w.same}
	copy(m.r, r)
	for i, f := range x {
		m.x[i] = float64(f)
	}
	if !w.roundsFor(matrix) {
		return m
	}
	m.first = matrix.dims[matrix.rank-1].lo
	if !format.InFixedPoint(matrix.st.buf.Format()) {
		// To fp16, of which what is in reach of the middle of two goes either way.
		for i, f := range w.inFP16(x, len(x), m.first) {
			m.x[i] = float64(f)
			if m.r[i] > 0 {
				m.r[i] += math.Abs(float64(f)) * 0x1p-10
			}
		}
		return m
	}
	d := digitsOf(x, m.first)
	m.scale = make([]float64, len(d.scales))
	for k, s := range d.scales {
		m.scale[k] = float64(s)
	}
	for i, n := range d.n {
		// The kernel divides 127·256 by the largest magnitude to 2 ulp: an integer moves that is as close to a half.
		moves := 0x1p-21*math.Abs(n) + at(wide, i)/m.scale[m.quad(i)]
		f := float64(x[i]) * float64(float32(1/m.scale[m.quad(i)]))
		m.x[i], m.r[i] = n, m.r[i]/m.scale[m.quad(i)]
		if math.Abs(math.Abs(f-math.Floor(f))-0.5) <= moves {
			if m.r[i]++; m.same { // of two kernels one has it, or the other
				m.r[i] -= 0.5
			}
		}
	}
	return m
}

// quad returns which 128 columns of the matrix an element meets.
func (m *multiplied) quad(i int) int { return (m.first+i)/digitColumns - m.first/digitColumns }

// times bounds the product with row j of a matrix.
func (m *multiplied) times(row []float32, q *groups, j int, tensorCores bool) (y, radius float64) {
	terms, moved := newSum(), 0.0
	var rounded bool // weights are widened, with a rounding
	weight := func(c int) (w, magnitude float64) {
		w = float64(row[c])
		magnitude = math.Abs(w)
		if q.scales != nil {
			g := j*q.count + c/q.size
			zero := 0.0
			if q.zeros != nil {
				zero = float64(q.zeros[g])
			}
			scale := float64(q.scales[g])
			magnitude = (magnitude + math.Abs(zero)) * math.Abs(scale)
			w = (w - zero) * scale
			rounded = rounded || !isFloat(w)
		}
		return w, magnitude
	}
	if m.scale == nil {
		for c, x := range m.x {
			w, magnitude := weight(c)
			terms.add(w * x)
			moved += magnitude * m.r[c]
		}
	} else { // integers of a quarter add up exactly
		for lo := 0; lo < len(row); {
			hi := min(len(row), lo+quarter-(m.first+lo)%quarter)
			scale, total := m.scale[m.quad(lo)], 0.0
			for c := lo; c < hi; c++ {
				w, magnitude := weight(c)
				total += w * m.x[c]
				moved += magnitude * m.r[c] * scale
			}
			terms.add(total * scale)
			if !isFloat(total * scale) {
				rounded = true
			}
			lo = hi
		}
	}
	if m.same && moved == 0 {
		return terms.value, 0
	}
	radius = terms.radius() + moved
	if tensorCores && m.scale == nil {
		radius += terms.cuts()
	}
	if radius > 0 || rounded {
		radius += 4 * roundoff * terms.magnitude // of a group's scale, and of a weight that is widened
	}
	return terms.value, radius
}

// meanSquare returns 1/rms of numbers with radii, and its relative error.
func (w *worker) meanSquare(x []float32, r []float64, eps float32) (inverse, relative float64) {
	squares, moved := newSum(), 0.0
	for i, f := range x {
		squares.add(float64(f) * float64(f))
		moved += 2*math.Abs(float64(f))*at(r, i) + at(r, i)*at(r, i)
	}
	mean := float64(float32(float32(squares.value)/float32(len(x)) + eps))
	inverse = 1 / math.Sqrt(mean)
	if w.same && moved == 0 {
		return inverse, twoUlp + roundoff
	}
	if squares.exact() && moved == 0 && float64(float32(inverse))*float64(float32(inverse))*mean == 1 {
		if power, _ := math.Frexp(inverse); power == 0.5 && isFloat(squares.value/float64(len(x))) &&
			squares.value/float64(len(x)) == mean {
			return inverse, 0
		}
	}
	relative = (squares.radius()+moved)/max(squares.value+float64(eps)*float64(len(x)), 0x1p-149) + 3*roundoff
	return inverse, relative/2 + twoUlp + roundoff
}

func ofRMSNorm(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	var g []float32
	if len(o.in) > 1 {
		g = w.floats(&o.in[1])
	} else {
		g = w.noGain(o, o.src.IntAt("head_dim", 0, 0))
	}
	offset := float64(o.src.IntAt("unit_offset", 0, 0))
	wide := r
	if w.same {
		wide = w.wide(&o.in[0])
	}
	whole, wr, n := x, r, len(g)
	ofHeads := o.src.Has("head_dim")
	if ofHeads {
		n = o.src.IntAt("head_dim", 0, 0)
	}
	m := n
	if len(o.in) == 3 {
		whole, wr = w.balls(&o.in[2])
		m = w.last(&o.in[2])
	}
	eps := float32(o.src.FloatOr("eps", 0))
	out := radii{of: make([]float64, len(x)), scales: make([]float64, len(x)/n)}
	for b := range out.scales {
		inverse, relative := w.meanSquare(whole[b*m:(b+1)*m], section(wr, b*m, m), eps)
		for i := b * n; i < (b+1)*n; i++ {
			gain := math.Abs(float64(g[i%len(g)]) + offset)
			f, e := math.Abs(float64(x[i])), at(r, i)
			if result.scales != nil { // rounded without the factor: by the VM twice, where fp32 does not have it
				e *= gain
				if off := 2 * roundoff * f * gain; e > 0 || !w.isFloat(f*gain) {
					out.of[i] = w.rounded(o.in[0].st.buf.DType, float32(f*gain), e+off, at(wide, i)*gain+off)
				}
				continue
			}
			out.of[i] = e * gain * inverse
			if exact := f * inverse * gain; relative > 0 || e > 0 || !isFloat(f*inverse) || !isFloat(exact) {
				out.of[i] += exact * (relative + 5*roundoff)
			}
		}
		out.scales[b] = relative
	}
	if result.scales == nil {
		out.scales = nil
	}
	return out
}

func ofLayerNorm(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	n := w.last(&o.in[0])
	var gain, bias []float32
	if len(o.in) > 1 {
		gain, n = w.floats(&o.in[1]), len(w.floats(&o.in[1]))
		if o.src.Has("head_dim") {
			n = o.src.IntAt("head_dim", 0, 0)
		}
	}
	if len(o.in) == 3 {
		bias = w.floats(&o.in[2])
	}
	rounds := ir.F32
	if o.in[0].st != nil && !o.src.Has("head_dim") {
		rounds = o.in[0].st.buf.DType
	}
	wide := r
	if w.same {
		wide = w.wide(&o.in[0])
	}
	eps, offset := o.src.FloatOr("eps", 0), float64(o.src.IntAt("unit_offset", 0, 0))
	out := make([]float64, len(x))
	for lo := 0; lo < len(x); lo += n {
		sums, squares := newSum(), newSum()
		for i := lo; i < lo+n; i++ {
			f := float64(x[i])
			sums.add(f)
			squares.add(f * f)
		}
		size := float64(n)
		mean := sums.value / size
		variance := max(0, squares.value/size-mean*mean)
		inverse := 1 / math.Sqrt(variance+eps)
		// off is how far the mean is, and the factor as a part of it: of radii, and with other sums or the same.
		off := func(r []float64, same bool) (meanOff, relative float64) {
			moved, movedSquares := 0.0, 0.0
			for i := lo; i < lo+n; i++ {
				moved += at(r, i)
				movedSquares += 2 * math.Abs(float64(x[i])) * at(r, i)
			}
			if same && moved == 0 {
				return 0, twoUlp + roundoff
			}
			meanOff = (sums.radius()+moved)/size + 2*roundoff*math.Abs(mean)
			varianceOff := (squares.radius()+movedSquares)/size + 2*math.Abs(mean)*meanOff +
				4*roundoff*squares.value/size
			return meanOff, varianceOff*inverse*inverse/2 + twoUlp + roundoff
		}
		meanOff, relative := off(r, w.same)
		meanWide, relativeWide := off(wide, false)
		for i := lo; i < lo+n; i++ {
			g, shift := 1.0, 0.0
			if gain != nil {
				g = offset + float64(gain[i%len(gain)])
			}
			if bias != nil {
				shift = float64(bias[i%len(bias)])
			}
			scaled := (float64(x[i]) - mean) * inverse * g
			of := func(meanOff, relative, e float64) float64 {
				return (meanOff+e)*inverse*math.Abs(g) + math.Abs(scaled)*(relative+5*roundoff) +
					2*roundoff*math.Abs(scaled+shift)
			}
			out[i] = w.rounded(rounds, float32(scaled+shift), of(meanOff, relative, at(r, i)),
				of(meanWide, relativeWide, at(wide, i)))
		}
	}
	return radii{of: out}
}
