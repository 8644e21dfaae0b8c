package format

import (
	"math"

	"amkc/ir/half"
)

// Pack quantises whole rows, each group separately: the result for a group depends only on its values, which are
// finite.
func (b blocks) Pack(dst []byte, values []float32, cols int) []byte {
	g := b.quantise(values, cols, nil)
	return b.PackGroups(dst, &g)
}

// quantise chooses scales and zero points for whole rows, and rounds to them. Columns have weights, or are all alike.
func (b blocks) quantise(values []float32, cols int, weights []float32) Groups {
	rows := len(values) / cols
	g := b.newGroups(rows, cols)
	if b.mins || b.steps {
		b.asStored(&g, values)
		return g
	}
	quantise := b.integers
	if b.float != nil {
		quantise = b.floats
	}
	w := alike[:]
	for row := range rows {
		for k := range g.PerRow() {
			first, last := row*cols+k*b.group, row*cols+min(cols, (k+1)*b.group)
			of := row*g.PerRow() + k
			if weights != nil {
				w = weights[k*b.group : min(cols, (k+1)*b.group)]
			}
			scale, zero := quantise(values[first:last], w, g.Q[first:last])
			if g.Scale[of] = scale; b.zeros {
				g.Zero[of] = int8(zero)
			}
		}
	}
	return g
}

// rounded is a scale as the format keeps it.
func (b blocks) rounded(scale float32) float32 {
	switch b.scale.name {
	case "F16":
		return half.RoundF16(scale)
	case "BF16":
		return half.RoundBF16(scale)
	case "F8E8M0":
		return half.FromE8M0(half.ToE8M0(scale))
	}
	return scale
}

// alike are the weights of columns of which nothing is known.
var alike = func() (ones [quantColumns]float32) {
	for i := range ones {
		ones[i] = 1
	}
	return ones
}()

// floats rounds a group to floats, of which the largest magnitude becomes the largest number, whatever the
// weights.
func (b blocks) floats(values, _ []float32, q []byte) (scale float32, zero int) {
	if scale = largest(values) / b.most(); b.scale == e8m0 { // which is rounded down
		scale *= b.most() / half.FromE8M0(half.ToE8M0(b.most()))
	}
	scale = b.rounded(scale)
	inverse := 1 / scale
	if !usable(scale, inverse) {
		clear(q)
		return 0, 0
	}
	for i, v := range values {
		q[i] = b.float.round(v * inverse)
	}
	return scale, 0
}

// usable reports whether a scale can be divided by: it and its inverse are normal numbers.
func usable(scale, inverse float32) bool {
	const least = 0x1p-126
	abs := func(f float32) float32 { return math.Float32frombits(math.Float32bits(f) &^ (1 << 31)) }
	return abs(scale) >= least && abs(inverse) >= least
}

func largest(values []float32) float32 {
	var most uint32 // floats that are not negative are in the order of their bits
	for _, v := range values {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(most)
}

// A grid is the values that a group can have: scale · (q − zero).
type grid struct {
	inverse float32 // of the scale
	zero    float32 // an integer
}

// integers chooses the grid with the least squared error, each value's times its weight, and rounds the values to it.
// 0 stays 0.
//
// Candidates differ in how much of the group's range they cover. Of 4 bits a narrower range, which cuts off what is
// largest, has the less error for most groups. What each one rounds the values to gives the best scale for those
// integers, by least squares, and so the error. The scale of the best is then rounded as it is kept, and the values to
// that. Plain rounding of the whole range is among the candidates, so that the error is never larger than that.
func (b blocks) integers(values, weights []float32, q []byte) (scale float32, zero int) {
	// In a unit that makes the largest value from 1 to 2, no square is too large or too small.
	most := largest(values)
	exponent := max(-120, min(120, int(math.Float32bits(most)>>23)-127))
	unit, inverse := power(exponent), power(-exponent)
	var scaled [quantColumns]float32
	v := scaled[:len(values)]
	low, high := float32(0), float32(0)
	for i, f := range values {
		v[i] = f * inverse
		low, high = min(low, v[i]), max(high, v[i])
	}
	if most == 0 {
		clear(q)
		return 0, 0
	}
	s := &search{v: v, w: weights[:len(v)], half: float32(int(1) << (b.bits - 1))}
	var chosen grid
	least := float32(math.Inf(1))
	for k, c := range [...]grid{s.plain(b.zeros, low, high), s.best(b.zeros, low, high)} {
		stored := b.rounded(1/c.inverse*unit) * inverse
		if c.inverse = 1 / stored; !usable(stored, c.inverse) {
			continue
		}
		if b.zeros && (k == 0 || b.bits == 8) { // a step in n is as much as rounding the scale takes
			c.zero = s.zero(c.inverse, low)
		}
		if e := s.err(c, stored); e < least {
			least, chosen, scale = e, c, stored*unit
		}
	}
	if scale == 0 { // too small to be kept
		clear(q)
		return 0, 0
	}
	s.round(chosen, q)
	return scale, int(chosen.zero)
}

// power is 2 to the n, of -126 to 127.
func power(n int) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// A search looks for the grid of a group.
type search struct {
	v, w []float32 // values and their weights
	half float32   // integers are from -half to half-1
}

// plain is the grid of the whole range: the largest magnitude becomes half-1, or the range all integers.
func (s *search) plain(zeros bool, low, high float32) grid {
	if !zeros {
		return grid{(s.half - 1) / max(-low, high), 0}
	}
	inverse := (2*s.half - 1) / (high - low)
	return grid{inverse, s.zero(inverse, low)}
}

// signed is the grid in which the largest magnitude, times share, becomes -half, which is farther from 0 than half-1:
// where it is positive, the scale is negative.
func (s *search) signed(low, high, share float32) grid {
	if high > -low {
		return grid{-s.half * share / high, 0}
	}
	return grid{s.half * share / -low, 0}
}

// zero is the integer that stands for 0 where low is to become the least one. It is an integer of the format.
func (s *search) zero(inverse, low float32) float32 {
	return max(-s.half, min(s.half-1, integer(float32(-low*inverse))-s.half))
}

// wider are how much farther than the integers the range of a group of 4 bits reaches, for each candidate. Twice as
// many make the error of normally distributed weights 0.5 % smaller at most.
var wider = [...]float32{0.96, 1.05, 1.15, 1.26, 1.4}

// best is the candidate with the least error, where each has the best scale for the integers that it makes. Of 8 bits
// there is one, because cutting off does not pay: the range with a step to spare, if zeros are.
func (s *search) best(zeros bool, low, high float32) grid {
	if s.half > 8 {
		if zeros {
			return grid{s.plain(zeros, low, high).inverse * (1 - 0x1p-8), 0}
		}
		return s.signed(low, high, 1)
	}
	var best grid
	most := float32(-1)
	try := func(g grid) {
		if vm, mm := s.fit(g); vm*vm > most*mm {
			most, best = vm*vm/mm, grid{mm / vm, g.zero}
		}
	}
	for _, share := range wider {
		if !zeros {
			try(s.signed(low, high, share))
			continue
		}
		inverse := (2*s.half - 1) * share / (high - low)
		cut := (high - low) * (1 - 1/share) / 2 // of either end
		try(grid{inverse, s.zero(inverse, low+cut)})
	}
	if zeros { // one end farther, and the other less far
		middle := best
		for _, zero := range []float32{max(-s.half, middle.zero-1), min(s.half-1, middle.zero+1)} {
			try(grid{middle.inverse, zero})
		}
	}
	return best
}

const toInteger = 0x1.8p23 // added to a float, leaves the nearest integer in its low bits

// integer is the nearest one, ties to even, of up to 22 bits.
func integer(f float32) float32 { return f + toInteger - toInteger }

// bounds are what values are held between before the magic number is taken off again: they are in the order of bits.
func (s *search) bounds(g grid) (low, high uint32) {
	return math.Float32bits(toInteger - s.half - g.zero), math.Float32bits(toInteger + s.half - 1 - g.zero)
}

// fit returns Σ w·v·m and Σ w·m² of the integers m = q − zero that a grid makes of the values.
func (s *search) fit(g grid) (vm, mm float32) {
	low, high := s.bounds(g)
	var vm2, mm2 float32 // of every other value, because an addition waits for the one before it
	v, w := s.v, s.w
	for ; len(v) >= 2 && len(w) >= 2; v, w = v[2:], w[2:] {
		m := within(float32(v[0]*g.inverse), low, high)
		wm := float32(w[0] * m)
		vm += float32(v[0] * wm)
		mm += float32(m * wm)
		m = within(float32(v[1]*g.inverse), low, high)
		wm = float32(w[1] * m)
		vm2 += float32(v[1] * wm)
		mm2 += float32(m * wm)
	}
	for i, f := range v {
		m := within(float32(f*g.inverse), low, high)
		wm := float32(w[i] * m)
		vm += float32(f * wm)
		mm += float32(m * wm)
	}
	return vm + vm2, mm + mm2
}

// within is the nearest integer between bounds.
func within(f float32, low, high uint32) float32 {
	return math.Float32frombits(max(low, min(high, math.Float32bits(f+toInteger)))) - toInteger
}

// err is the weighted squared error of a grid whose scale is given.
func (s *search) err(g grid, scale float32) (sum float32) {
	low, high := s.bounds(g)
	for i, f := range s.v {
		d := f - float32(scale*within(float32(f*g.inverse), low, high))
		sum += float32(float32(d*d) * s.w[i])
	}
	return sum
}

// round makes the integers of the values.
func (s *search) round(g grid, q []byte) {
	low, high := s.bounds(g)
	for i, f := range s.v {
		q[i] = byte(int8(within(float32(f*g.inverse), low, high) + g.zero))
	}
}
