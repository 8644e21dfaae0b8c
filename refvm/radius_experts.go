package refvm

import "math"

// What a router chooses and weighs, and the products of experts.

func ofSoftmax(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	n := w.last(&o.in[0])
	out := make([]float64, len(x))
	for at0 := 0; at0 < len(x); at0 += n {
		row, largest, off, all := x[at0:at0+n], math.Inf(-1), 0.0, 0.0
		for i, f := range row {
			largest, off = max(largest, float64(f)), max(off, at(r, at0+i))
		}
		relative := make([]float64, n) // of a power of e
		for i, f := range row {
			relative[i] = at(r, at0+i) + off + 2*roundoff*math.Abs(float64(f)-largest) + 2*twoUlp
			all += float64(result.f[at0+i]) * relative[i]
		}
		for i := range row {
			p := float64(result.f[at0+i])
			out[at0+i] = p * (relative[i] + all + float64(n+4)*roundoff)
		}
	}
	return radii{of: out}
}

// The derivative of a sigmoid is 1/4 at most.
func ofSigmoid(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	out := make([]float64, len(x))
	for i := range x {
		out[i] = at(r, i)/4 + float64(result.f[i])*(2*twoUlp+4*roundoff)
	}
	return radii{of: out}
}

func ofTopK(w *worker, o *op, _ value) radii {
	x, r := w.balls(&o.in[0])
	n, k := w.last(&o.in[0]), o.src.IntAt("k", 0, 0)
	if r == nil {
		return radii{}
	}
	var bias []float32
	if len(o.in) > 1 {
		bias = w.floats(&o.in[1])
	}
	groups, top := o.src.IntAt("groups", 0, 1), o.src.IntAt("top_groups", 0, 1)
	var out []float64
	for first := 0; first < len(x); first += n {
		for _, i := range largestFirst(x[first:first+n], bias, groups, top)[:k] {
			out = append(out, r[first+i])
		}
	}
	return radii{of: out}
}

func ofRenormalise(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	n := w.last(&o.in[0])
	out := make([]float64, len(x))
	for first := 0; first < len(x); first += n {
		sum, off := 0.0, 0.0
		for i, f := range x[first : first+n] {
			sum, off = sum+float64(f), off+at(r, first+i)
		}
		for i := first; i < first+n; i++ {
			f := math.Abs(float64(result.f[i]))
			out[i] = (at(r, i)+f*off)/max(math.Abs(sum), 0x1p-149) + f*float64(n+2)*roundoff
		}
	}
	return radii{of: out}
}

func ofSelected(w *worker, o *op, result value) radii {
	x, scales := w.scaled(&o.in[0])
	family := &o.in[1]
	k, n := family.dims[2].n, family.dims[1].n
	r := w.radiiOf(&o.in[0])
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
	ids, ints := w.bits(&o.in[2])
	rows := len(x) / k
	of := len(ids) / rows
	first, taken := o.src.IntAt("first_row", 0, 0), o.src.IntAt("rows", 0, of*n)
	out := make([]float64, rows*taken)
	for j := range ids {
		b, begin := j/of, j%of*n
		lo, hi := max(first, begin), min(first+taken, begin+n)
		id := integer(ids, ints, j)
		if lo >= hi || id < 0 || id >= family.dims[0].n {
			continue
		}
		one := *family
		one.box = family.pin(id)
		matrix := w.gather(&one.box)
		vector := w.multiplied(&one, x[b*k:(b+1)*k], section(r, b*k, k), section(wide, b*k, k))
		for row := lo; row < hi; row++ {
			y, e := vector.times(matrix[(row-begin)*k:(row-begin+1)*k], &groups{}, row-begin, w.onTensorCores())
			if scales != nil {
				scale := float64(scales[b])
				scaled := y * scale
				if e *= math.Abs(scale); e > 0 || at(relative, b) > 0 || !w.isFloat(scaled) {
					e += math.Abs(scaled) * (at(relative, b) + 2*roundoff)
				}
			}
			at := b*taken + row - first
			if out[at] = e; len(o.in) > 3 {
				out[at] += biased(w, o, j, row-begin, of, float64(result.f[at]))
			}
		}
	}
	return radii{of: out}
}

// biased is by how much more a row of the j-th matrix of n may differ for its bias. Weighed biases may be added up
// before they are added to the sum of all products.
func biased(w *worker, o *op, j, row, n int, result float64) float64 {
	if len(o.in) < 5 {
		return 4 * roundoff * math.Abs(result)
	}
	ids, ints := w.bits(&o.in[2])
	pinned := o.in[3].pin(integer(ids, ints, j))
	bias := math.Abs(float64(w.floats(&o.in[4])[j]) * float64(w.gather(&pinned)[row]))
	return 4 * float64(n) * roundoff * (math.Abs(result) + 2*bias)
}

func ofSumRows(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	n, parts := w.last(&o.in[0]), o.src.IntAt("parts", 0, 0)
	out := make([]float64, len(result.f))
	for i := range out {
		terms, moved := newSum(), 0.0
		for part := range parts {
			j := i/n*n*parts + part*n + i%n
			terms.add(float64(x[j]))
			moved += at(r, j)
		}
		if out[i] = moved; !terms.exact() || moved > 0 {
			out[i] += 2 * roundoff * terms.magnitude * float64(parts-1)
		}
	}
	return radii{of: out}
}

func ofScaleBlocks(w *worker, o *op, result value) radii {
	x, r := w.balls(&o.in[0])
	y, s := w.balls(&o.in[1])
	n, m := w.last(&o.in[0]), w.last(&o.in[1])
	block, first := o.src.IntAt("block", 0, 0), o.src.IntAt("first", 0, 0)
	out := make([]float64, len(x))
	for i, f := range x {
		j := i/n*m + (first+i%n)/block
		a, b := math.Abs(float64(f)), math.Abs(float64(y[j]))
		out[i] = b*at(r, i) + a*at(s, j) + at(r, i)*at(s, j)
		if out[i] > 0 || !w.isFloat(a*b) {
			out[i] += 2 * roundoff * math.Abs(float64(result.f[i]))
		}
	}
	return radii{of: out}
}
