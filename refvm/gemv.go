package refvm

import (
	"amkc/ir"
	"amkc/ir/format"
	ops "amkc/ir/op"
)

var products = kernelTable{
	ops.GEMV:    gemv,
	ops.GEMM:    gemv,
	ops.DEQUANT: dequant,
}

// gemv multiplies rows of x with a matrix: out[b,j] = x[b] · W[j]. Nearly all of a step's time goes here, so that one
// SM's rows are one task and the tasks of a stage run on all workers.
//
// A matrix of integers comes with scales, and with zeros if it is asymmetric: each row is widened before it is used.
func gemv(w *worker, o *op) error {
	x, scales := w.scaled(&o.in[0])
	k := w.last(&o.in[1])
	if w.last(&o.in[0]) != k { // rows of another length than those that the factors are for
		x, scales = w.applied(x, scales), nil
	}
	if k == 0 || len(x) == 0 || len(x)%k != 0 {
		return w.misfit(o, "has an input of %d elements and a matrix of %d columns, want whole rows", len(x), k)
	}
	matrix := w.floats(&o.in[1])
	rows, n := len(x)/k, len(matrix)/k
	if o.src.Code == ir.GEMV && rows != 1 {
		return w.misfit(o, "has an input of %d rows, want one; GEMM_TILE takes several", rows)
	}
	quantised := o.src.Has("qdtype") && len(o.in) > 2 // without scales, integers stand for themselves
	var bias []float32
	var q groups
	switch {
	case quantised:
		var err error
		if q, err = w.groups(o, n, k, o.in[2:]); err != nil {
			return err
		}
	case len(o.in) == 3:
		if bias = w.floats(&o.in[2]); len(bias) != n {
			return w.misfit(o, "has %d rows and a bias of %d elements, want the same number", n, len(bias))
		}
	case len(o.in) > 3:
		return w.misfit(o, "has %d inputs, want a qdtype of I8 or I4 with them", len(o.in))
	}
	w.tell(&o.in[1], x, scales, k)
	parts := o.src.IntAt("parts", 0, 1)
	if parts < 1 || parts&(parts-1) != 0 || k%parts != 0 {
		return w.misfit(o, "has %d columns in %d parts, want equal parts, as many as a power of two", k, parts)
	}
	sums, each := []float32{0}, k/parts
	if parts > 1 {
		sums = w.alloc(parts)
	}
	multiply := w.multiplierOf(&o.in[1], x, k, parts)
	out := w.alloc(rows * n)
	for j := range n {
		w.spend(rows * k)
		row := matrix[j*k : (j+1)*k]
		if quantised {
			row = q.widen(row, j)
		}
		for b := range rows {
			for part := range sums {
				sums[part] = multiply(part, b, row[part*each:(part+1)*each])
			}
			y := inPairs(sums)
			if scales != nil {
				y *= scales[b]
			}
			if bias != nil {
				y += bias[j]
			}
			out[b*n+j] = y
		}
	}
	return w.emit(o, out, n)
}

// inPairs adds up sums, as many as a power of two: each two of them, then each two of these, and so on. It writes over
// them.
func inPairs(sums []float32) float32 {
	for ; len(sums) > 1; sums = sums[:len(sums)/2] {
		for i := range len(sums) / 2 {
			sums[i] = sums[2*i] + sums[2*i+1]
		}
	}
	return sums[0]
}

// multiplierOf multiplies a part of rows of x, of which each has k elements in equal parts, by that part of a row of a
// matrix.
func (w *worker) multiplierOf(matrix *operand, x []float32, k, parts int) func(part, b int, row []float32) float32 {
	each := k / parts
	if w.roundsFor(matrix) {
		first := matrix.dims[matrix.rank-1].lo
		if format.InFixedPoint(matrix.st.buf.Format()) {
			fixed := make([]digits, len(x)/each)
			for i := range fixed {
				fixed[i] = digitsOf(x[i*each:(i+1)*each], first+i%parts*each)
			}
			return func(part, b int, row []float32) float32 { return fixed[b*parts+part].dot(row) }
		}
		x = w.inFP16(x, k, first)
	}
	return func(part, b int, row []float32) float32 { return dot(x[b*k+part*each:][:each], row) }
}

// tell shows Options.Products what a matrix is multiplied with, if this task has its first row.
func (w *worker) tell(matrix *operand, x, scales []float32, k int) {
	if see := w.vm.opts.Products; see != nil && matrix.st != nil && matrix.rank == 2 && matrix.n > 0 &&
		matrix.dims[0].at(0) == 0 {
		see(matrix.st.index, matrix.dims[1].at(0), w.applied(x, scales), k)
	}
}

// groups are the scales of a matrix of integers: column c of a row belongs to group c/size.
type groups struct {
	size, count   int
	scales, zeros []float32 // [rows, count]; zeros may be nil
	row           []float32 // scratch
}

// groups reads the scales, and the zeros if there are any.
func (w *worker) groups(o *op, n, k int, in []operand) (groups, error) {
	size := o.src.IntAt("group", 0, 0)
	q := groups{size: size, count: (k + size - 1) / size, scales: w.floats(&in[0])}
	want := n * q.count
	if len(q.scales) != want {
		return q, w.misfit(o, "has %d scales, want %d for %d rows of %d groups", len(q.scales), want, n, q.count)
	}
	if len(in) > 1 {
		if q.zeros = w.floats(&in[1]); len(q.zeros) != want {
			return q, w.misfit(o, "has %d zeros, want %d for %d rows of %d groups", len(q.zeros), want, n, q.count)
		}
	}
	q.row = w.alloc(k)
	return q, nil
}

// widen returns row j, (q - zero) * scale. The slice is valid until the next call.
func (q *groups) widen(row []float32, j int) []float32 {
	for c, f := range row {
		g := j*q.count + c/q.size
		if q.zeros != nil {
			f -= q.zeros[g]
		}
		q.row[c] = f * q.scales[g]
	}
	return q.row
}

// dequant widens a matrix of integers.
func dequant(w *worker, o *op) error {
	matrix, k := w.floats(&o.in[0]), w.last(&o.in[0])
	rows := len(matrix) / max(1, k)
	q, err := w.groups(o, rows, k, o.in[1:])
	if err != nil {
		return err
	}
	out := w.alloc(len(matrix))
	for j := range rows {
		copy(out[j*k:], q.widen(matrix[j*k:(j+1)*k], j))
	}
	return w.emit(o, out, k)
}

// dot returns the sum of x[i]*y[i]. Eight sums run side by side, because one addition waits for the one before it; they
// are added in a fixed order, so that the result depends on nothing but the operands.
func dot(x, y []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	i := 0
	for ; i+8 <= len(x) && i+8 <= len(y); i += 8 {
		p, q := x[i:i+8:i+8], y[i:i+8:i+8]
		s0 += p[0] * q[0]
		s1 += p[1] * q[1]
		s2 += p[2] * q[2]
		s3 += p[3] * q[3]
		s4 += p[4] * q[4]
		s5 += p[5] * q[5]
		s6 += p[6] * q[6]
		s7 += p[7] * q[7]
	}
	for ; i < len(x); i++ {
		s0 += x[i] * y[i]
	}
	return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
}
