package refvm

import (
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	ops "amkc/ir/op"
)

var sampling = kernelTable{ops.SAMPLE: sample}

// sample chooses an element of each row by the settings of the row's sequence: the largest, or with a temperature that
// of the largest sum of element/temperature and noise. With partial=1 each SM leaves the element and the number of what
// it would choose, or no index; a later sample over those makes the same sums again, and chooses among the SMs.
func sample(w *worker, o *op) error {
	x, n := w.floats(&o.in[0]), w.last(&o.in[0])
	if len(o.in) != 3 { // whose elements have indices of their own
		if err := w.numbers(o, n); err != nil {
			return err
		}
	}
	partial := o.src.IntAt("partial", 0, 0) != 0
	settings := &o.in[len(o.in)-1]
	words, wordInts := w.bits(settings)
	rows := w.rows(&o.in[0])
	sequences := len(words) / ops.SamplingWords
	switch {
	case partial && (len(o.in) != 2 || len(o.out) != 2):
		return w.misfit(o, "has %d inputs and %d outputs, want 2 and 2 with partial=1", len(o.in), len(o.out))
	case w.last(settings) != ops.SamplingWords || sequences < 1 || rows%sequences != 0:
		return w.misfit(o, "has settings of %d elements in rows of %d for %d rows, want %d for each sequence",
			len(words), w.last(settings), rows, ops.SamplingWords)
	case !partial && len(x) == 0:
		return w.misfit(o, "has no values to choose from; with partial=1 it may have none")
	}
	first := 0
	if partial { // as in argmax: the numbers of a whole row begin at 0
		first = o.src.IntAt("first", 0, 0)
	}
	index := func(_, i int) int { return first + i }
	if len(o.in) == 3 {
		indices, ints := w.bits(&o.in[1])
		if len(indices) != len(x) || w.last(&o.in[1]) != n {
			return w.misfit(o, "has %d values and %d indices, in rows of %d and %d, want as many", len(x), len(indices),
				n, w.last(&o.in[1]))
		}
		index = func(b, i int) int { return integer(indices, ints, b*n+i) }
	}
	values, chosen := w.alloc(rows), w.alloc(rows)
	for b := range rows {
		d := drawOf(words[b/(rows/sequences)*ops.SamplingWords:], wordInts, w.ofRow(o, "pos", b, w.at[0])+1)
		at, top, sum := noIndex, float32(math.Inf(-1)), math.Inf(-1)
		for i, f := range x[b*n : (b+1)*n] {
			w.spend(1)
			id := index(b, i)
			if id == noIndex {
				continue
			}
			if s := d.sum(f, id); s > sum || s == sum && id < at && at != noIndex { // -Inf is never chosen
				at, top, sum = id, f, s
			}
		}
		if at == noIndex && !partial {
			at = 0
		}
		values[b], chosen[b] = top, fromInt(int32(at))
	}
	if partial {
		if err := w.put(o, &o.out[0], value{f: values, last: rows}); err != nil {
			return err
		}
		return w.put(o, &o.out[1], value{f: chosen, ints: true, last: rows})
	}
	for k := range o.out {
		if err := w.put(o, &o.out[k], value{f: chosen, ints: true, last: rows}); err != nil {
			return err
		}
	}
	return nil
}

// A draw is what the token at a position is chosen by.
type draw struct {
	temperature float64
	seed        uint64
	position    uint64
}

func drawOf(words []float32, ints bool, position int) draw {
	word := func(i int) uint64 { return uint64(uint32(integer(words, ints, i))) }
	return draw{math.Float64frombits(word(0) | word(1)<<32), word(2) | word(3)<<32, uint64(position)}
}

// sum is what the largest of is looked for: the element, or the element over the temperature and the noise of its
// number, as docs/sampling.md has it.
func (d draw) sum(x float32, id int) float64 {
	if d.temperature == 0 || math.IsInf(float64(x), -1) {
		return float64(x)
	}
	key := [2]uint32{uint32(d.seed), uint32(d.seed >> 32)}
	c := [4]uint32{uint32(id) / 2, 0, uint32(d.position), uint32(d.position >> 32)}
	for round := range uint32(10) {
		a, b := uint64(c[0])*0xD2511F53, uint64(c[2])*0xCD9E8D57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ (key[0] + round*0x9E3779B9), uint32(b),
			uint32(a>>32) ^ c[3] ^ (key[1] + round*0xBB67AE85), uint32(a)}
	}
	low, high := c[0], c[1]
	if id%2 == 1 {
		low, high = c[2], c[3]
	}
	v := 2*((uint64(high)<<32|uint64(low))>>12) + 1
	u := math.Ldexp(float64(1<<53-v), -53)
	return float64(float64(x)/d.temperature) - logarithm(-logarithm(u))
}

// logarithm is the natural one, by the operations that docs/sampling.md lists, each of them rounded once.
func logarithm(x float64) float64 {
	word := math.Float64bits(x)
	k := int(word>>52) - 1022
	m := math.Float64frombits(word&(1<<52-1) | 1022<<52) // 0.5 to 1
	if m < 0x1.6a09e667f3bcdp-1 {
		m, k = 2*m, k-1
	}
	f := m - 1
	s := f / (2 + f)
	z, twice := float64(s*s), 2*s
	q := 1.0 / 23
	for n := 21; n >= 3; n -= 2 {
		q = math.FMA(q, z, 1/float64(n))
	}
	low := math.FMA(float64(k), 0x1.a39ef35793c76p-33, float64(twice*float64(z*q)))
	return math.FMA(float64(k), 0x1.62e42fee00000p-1, float64(twice+low))
}

// Settings determine how the tokens of a sequence are chosen. The zero value chooses the largest logit.
type Settings struct {
	Temperature float64
	Seed        uint64
}

// Sample sets the settings of each sequence of a pass; until then each chooses the largest logits.
func (s *Session) Sample(of []Settings) error {
	inputs := s.mem.byRole[ir.RoleSampling]
	if len(inputs) == 0 {
		return diag.Errorf(CodeBuffer, "program", "tokens are chosen by no settings: want an IO_INPUT of I32 of role "+
			"%s", ir.RoleSampling)
	}
	in := inputs[0]
	if len(of)*ops.SamplingWords != len(in.data) {
		return diag.Errorf(CodeBuffer, "buffer "+in.buf.Name, "holds settings of %d sequences, want those and not of "+
			"%d", len(in.data)/ops.SamplingWords, len(of))
	}
	for i, settings := range of {
		t := math.Float64bits(settings.Temperature)
		for k, word := range []uint64{t, t >> 32, settings.Seed, settings.Seed >> 32} {
			in.data[i*ops.SamplingWords+k] = fromInt(int32(uint32(word)))
		}
	}
	return nil
}
