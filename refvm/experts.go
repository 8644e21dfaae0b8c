package refvm

import (
	"math"
	"slices"

	"amkc/ir/diag"
	ops "amkc/ir/op"
)

// What layers with experts compute: a router chooses some of a family of matrices for each token, and weighs what they
// make.
var expert = kernelTable{
	ops.TOPK:           topK,
	ops.RENORMALISE:    renormalise,
	ops.SELECTED:       selected,
	ops.SumRows:        sumRows,
	ops.ScaleBlocks:    scaleBlocks,
	ops.SIGMOID:        pointwise(sigmoid),
	ops.ClampedSiluMul: clampedSiluMul,
}

// topK chooses the k largest elements of each row, in a total order: by value, then by number, and what is not a number
// last. A bias counts for the choice alone. With groups, the elements of the best groups are chosen from.
func topK(w *worker, o *op) error {
	x, n, k := w.floats(&o.in[0]), w.last(&o.in[0]), o.src.IntAt("k", 0, 0)
	var bias []float32
	if len(o.in) > 1 {
		if bias = w.floats(&o.in[1]); len(bias) != n {
			return w.misfit(o, "has a bias of %d elements for rows of %d, want as many", len(bias), n)
		}
	}
	groups, top := o.src.IntAt("groups", 0, 1), o.src.IntAt("top_groups", 0, 1)
	if o.src.Has("groups") != o.src.Has("top_groups") {
		return w.misfit(o, "has one of groups and top_groups, want both or none")
	}
	if o.src.Has("groups") && (n%groups != 0 || n/groups < 2 || top > groups) {
		return w.misfit(o, "chooses from %d of %d groups of %d elements, want groups of as many, at least two", top,
			groups, n)
	}
	if k > n/groups*top {
		return w.misfit(o, "chooses %d of rows of %d elements, want at most as many", k, n/groups*top)
	}
	if last := n - 1; last >= noIndex {
		return w.misfit(o, "numbers an element %d, want at most %d", last, noIndex-1)
	}
	rows := len(x) / n
	values, ids := w.alloc(rows*k), w.alloc(rows*k)
	for b := range rows {
		row := x[b*n : (b+1)*n]
		chosen := largestFirst(row, bias, groups, top)[:k]
		for r, i := range chosen {
			values[b*k+r], ids[b*k+r] = row[i], fromInt(int32(i))
			if o.src.Has("jitter") {
				values[b*k+r] = mixed(row, chosen[:r+1], o.src.FloatOr("jitter", 0))
			}
		}
	}
	if err := w.put(o, &o.out[0], value{f: values, last: k}); err != nil {
		return err
	}
	return w.put(o, &o.out[1], value{f: ids, ints: true, last: k})
}

// largestFirst are the numbers of elements in the order of TOPK, which a bias may change; those of the best groups.
func largestFirst(row, bias []float32, groups, top int) []int {
	if bias != nil {
		row = slices.Clone(row)
		for i := range row {
			row[i] += bias[i]
		}
	}
	return sorted(row, candidates(row, groups, top))
}

// candidates are the numbers of the elements of the best groups, in order: those with the largest sums of the two
// largest elements.
func candidates(score []float32, groups, top int) []int {
	size := len(score) / groups
	all := make([]int, len(score))
	for i := range all {
		all[i] = i
	}
	if top == groups {
		return all
	}
	sums, numbers := make([]float32, groups), make([]int, groups)
	for g := range groups {
		best := sorted(score, slices.Clone(all[g*size:(g+1)*size]))
		sums[g], numbers[g] = score[best[0]]+score[best[1]], g
	}
	var out []int
	for _, g := range sorted(sums, numbers)[:top] {
		out = append(out, all[g*size:(g+1)*size]...)
	}
	slices.Sort(out)
	return out
}

// sorted sorts numbers of elements, which are in order, by the elements: the largest first, and what is not a number
// last. Equal ones stay in the order of their numbers.
func sorted(x []float32, numbers []int) []int {
	slices.SortStableFunc(numbers, func(i, j int) int {
		p, q := x[i], x[j]
		switch {
		case p > q || p == p && q != q:
			return -1
		case p < q || p != p && q == q:
			return 1
		}
		return 0
	})
	return numbers
}

// renormalise divides the elements of each row by their sum.
func renormalise(w *worker, o *op) error {
	x, n := w.floats(&o.in[0]), w.last(&o.in[0])
	extra, least := float32(o.src.FloatOr("extra", 0)), float32(o.src.FloatOr("least", 0))
	out := w.alloc(len(x))
	for at := 0; at < len(x); at += n {
		sum := float32(0)
		for _, f := range x[at : at+n] {
			sum += f
		}
		if sum += extra; o.src.Has("least") && sum < least {
			sum = least
		}
		for i, f := range x[at : at+n] {
			out[at+i] = f / sum
		}
	}
	return w.emit(o, out, n)
}

// mixed is the weight of the last of some chosen elements of a row: against those near it that were not chosen before.
func mixed(row []float32, chosen []int, jitter float64) float32 {
	best, sum := row[chosen[len(chosen)-1]], 0.0
	for i, f := range row {
		far := (best-f)/max(float32(math.Abs(float64(f))), best) > float32(2*jitter)
		if !far && !slices.Contains(chosen[:len(chosen)-1], i) {
			sum += math.Exp(float64(f - best))
		}
	}
	return float32(1 / sum)
}

// selected multiplies rows of x with the matrices that ids name. Only these are read.
func selected(w *worker, o *op) error {
	x, scales := w.scaled(&o.in[0])
	family := &o.in[1]
	if family.st == nil || family.rank != 3 || family.n == 0 {
		return w.misfit(o, "has no matrices, want a view of three dimensions that is not empty")
	}
	count, n, k := family.dims[0].n, family.dims[1].n, family.dims[2].n
	if w.last(&o.in[0]) != k { // rows of another length than those that the factors are for
		x, scales = w.applied(x, scales), nil
	}
	if len(x) == 0 || len(x)%k != 0 {
		return w.misfit(o, "has an input of %d elements and matrices of %d columns, want whole rows", len(x), k)
	}
	ids, ints := w.bits(&o.in[2])
	rows := len(x) / k
	if len(ids) == 0 || len(ids)%rows != 0 {
		return w.misfit(o, "has %d ids for %d rows, want as many for each", len(ids), rows)
	}
	var biases *operand
	var weights []float32
	if len(o.in) > 3 {
		if biases = &o.in[3]; biases.st == nil || biases.rank != 2 || biases.dims[0].n != count ||
			biases.dims[1].n != n {
			return w.misfit(o, "has biases of another shape than the matrices, want %d rows of %d", count, n)
		}
	}
	if len(o.in) > 4 {
		if weights = w.floats(&o.in[4]); len(weights) != len(ids) {
			return w.misfit(o, "has %d ids and %d weights, want as many", len(ids), len(weights))
		}
	}
	for _, table := range []*operand{family, biases} {
		if table != nil && w.vm.touched != nil && !table.st.buf.Kind.ReadOnly() {
			w.touchBox(&table.box) // any of them: which one depends on values
		}
	}
	of := len(ids) / rows
	first, taken := o.src.IntAt("first_row", 0, 0), o.src.IntAt("rows", 0, of*n)
	if o.src.Has("first_row") && !o.src.Has("rows") {
		return w.misfit(o, noRows)
	}
	if first < 0 || taken < 1 || taken > of*n-first {
		return w.misfit(o, "takes %d rows from row %d on, of %d; want rows that are there", taken, first, of*n)
	}
	out, multiply := w.alloc(rows*taken), w.multiplierOf(family, x, k, 1)
	for j := range ids {
		b, at := j/of, j%of*n // its matrix makes rows of x[b] from `at` on
		lo, hi := max(first, at), min(first+taken, at+n)
		if lo >= hi {
			continue
		}
		id := integer(ids, ints, j)
		if id < 0 || id >= count {
			return diag.Errorf(CodeValue, w.task.pos(), "selects matrix %d, want one from 0 to %d", id, count-1)
		}
		w.spend((hi - lo) * k)
		pinned := family.pin(id)
		matrix := w.gather(&pinned)
		var bias []float32
		if biases != nil {
			pinned = biases.pin(id)
			bias = w.gather(&pinned)
		}
		for r := lo; r < hi; r++ {
			y := multiply(0, b, matrix[(r-at)*k:(r-at+1)*k])
			if scales != nil {
				y *= scales[b]
			}
			switch {
			case bias != nil && weights != nil:
				y += weights[j] * bias[r-at]
			case bias != nil:
				y += bias[r-at]
			}
			out[b*taken+r-first] = y
		}
	}
	return w.emit(o, out, taken)
}

// sumRows adds up groups of rows, in their order.
func sumRows(w *worker, o *op) error {
	x, n, parts := w.floats(&o.in[0]), w.last(&o.in[0]), o.src.IntAt("parts", 0, 0)
	if rows := w.rows(&o.in[0]); rows%parts != 0 {
		return w.misfit(o, "has %d rows, want a multiple of %d", rows, parts)
	}
	out := w.alloc(len(x) / parts)
	for i := range out {
		at := i/n*n*parts + i%n
		out[i] = x[at]
		for part := 1; part < parts; part++ {
			out[i] += x[at+part*n]
		}
	}
	return w.emit(o, out, n)
}

// scaleBlocks multiplies blocks of elements by one number each.
func scaleBlocks(w *worker, o *op) error {
	x, n := w.floats(&o.in[0]), w.last(&o.in[0])
	y, m := w.floats(&o.in[1]), w.last(&o.in[1])
	block, first := o.src.IntAt("block", 0, 0), o.src.IntAt("first", 0, 0)
	if w.rows(&o.in[0]) != w.rows(&o.in[1]) {
		return w.misfit(o, "has %d rows and %d rows of factors, want as many", w.rows(&o.in[0]), w.rows(&o.in[1]))
	}
	if n > 0 && (first+n-1)/block >= m {
		return w.misfit(o, "takes elements up to %d of %d blocks of %d, want those that are there", first+n-1, m, block)
	}
	if n > 0 {
		if err := w.numbers(o, n); err != nil {
			return err
		}
	}
	out := w.alloc(len(x))
	for i, f := range x {
		out[i] = f * y[i/n*m+(first+i%n)/block]
	}
	return w.emit(o, out, n)
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// clampedSiluMul is the middle of an MLP whose gate is bounded above, and its other half on both sides.
func clampedSiluMul(w *worker, o *op) error {
	both, n := w.floats(&o.in[0]), w.last(&o.in[0])
	if n%2 != 0 {
		return w.misfit(o, "has rows of %d elements, want gate and up interleaved", n)
	}
	gate, bound := boundedGate(o)
	out := w.alloc(len(both) / 2)
	for i := range out {
		out[i] = gate(both[2*i]) * (max(-bound, min(both[2*i+1], bound)) + 1)
	}
	return w.emit(o, out, n/2)
}

// boundedGate is what CLAMPED_SILU_MUL makes of a gate, and its bound.
func boundedGate(o *op) (func(float32) float32, float32) {
	bound, alpha := float32(o.src.FloatOr("cap", 0)), float64(float32(o.src.FloatOr("scale", 1)))
	return func(x float32) float32 {
		g := float64(min(x, bound))
		return float32(g / (1 + math.Exp(-alpha*g)))
	}, bound
}
