package population

import "amkc/ir"

// ops chooses the SM of a task and what it does; left is how many tasks are to come, this one included. The last ones
// write the outputs, if there are any.
func (d *dag) ops(left int) (sm int, ops []dagOp) {
	sm = -1
	if d.flat.SMs > 0 && !chance(d.Rand, 4) {
		sm = d.IntN(d.flat.SMs)
	}
	switch {
	case left == 1 && d.output >= 0:
		return sm, d.written(sm, ops, dagView{d.output, dagWidth / 2, dagWidth / 2})
	case left == 2 && d.output >= 0:
		return sm, d.written(sm, ops, dagView{d.output, 0, dagWidth / 2})
	case left == 3 && d.token >= 0:
		x := d.read(sm, d.IntN(dagWidth)+1)
		return sm, append(ops, d.op(ir.ArgMax, []dagView{x}, dagView{d.token, 0, 1}))
	case chance(d.Rand, 16):
		return sm, append(ops, dagOp{FlatOp: ir.FlatOp{Op: ir.Op{Code: ir.NOP}}}) // it only synchronises
	}
	for range 1 + d.IntN(5)/4 {
		ops = d.random(sm, ops)
	}
	return sm, ops
}

// written appends an op whose result is a given view of at most dagWidth elements.
func (d *dag) written(sm int, ops []dagOp, out dagView) []dagOp {
	if chance(d.Rand, 2) {
		return append(ops, d.op(ir.COPY, []dagView{d.read(sm, out.n)}, out))
	}
	return append(ops, d.gemv(d.read(sm, dagWidth), out))
}

// random appends one op, or two that hand a temporary on.
func (d *dag) random(sm int, ops []dagOp) []dagOp {
	short := 1 + d.IntN(dagWidth)
	switch d.IntN(12) {
	case 0, 1:
		return d.into(sm, ops, ir.COPY, true, d.read(sm, short))
	case 2, 3:
		return d.into(sm, ops, ir.ADD, true, d.read(sm, short), d.read(sm, short))
	case 4:
		return d.into(sm, ops, ir.MUL, true, d.read(sm, short), d.read(sm, short))
	case 5:
		return d.into(sm, ops, ir.SiluMul, false, d.read(sm, short), d.read(sm, short))
	case 6, 7:
		x := d.read(sm, dagWidth)
		if out, ok := d.place(sm, []int{2, 4, dagWidth}[d.IntN(3)], x); ok {
			return append(ops, d.gemv(x, out))
		}
	case 8:
		return d.into(sm, ops, ir.RMSNORM, false, d.read(sm, dagWidth), dagView{dagNorm, 0, dagWidth})
	case 9:
		return d.fused(sm, ops)
	case 10:
		return d.appendRow(sm, ops)
	default:
		return d.attention(sm, ops)
	}
	return ops
}

// op is an op on views.
func (d *dag) op(code ir.Opcode, in []dagView, out dagView) dagOp {
	o := dagOp{FlatOp: ir.FlatOp{Op: ir.Op{Code: code}}, reads: in, writes: []dagView{out}}
	for _, v := range in {
		o.In = append(o.In, d.operand(v))
		o.InBuf = append(o.InBuf, v.buf)
	}
	o.Out = []ir.Operand{d.operand(out)}
	o.OutBuf = []int{out.buf}
	if code == ir.RMSNORM {
		o.Params = []ir.Param{ir.FloatParam("eps", 1e-5)}
	}
	return o
}

// into appends an op of which the result is as long as its first operand. It may replace an operand in place if each of
// its elements depends on those at the same place alone.
func (d *dag) into(sm int, ops []dagOp, code ir.Opcode, pointwise bool, in ...dagView) []dagOp {
	x := in[0]
	if pointwise && !d.bufs[x.buf].input && chance(d.Rand, 3) {
		if code == ir.COPY || x.buf < dagFixed || in[1] != x && d.overlap(in[1], x) {
			return ops
		}
		return append(ops, d.op(code, in, x))
	}
	out, ok := d.place(sm, x.n, in...)
	if !ok {
		return ops
	}
	return append(ops, d.op(code, in, out))
}

// gemv multiplies by as many rows of the weight as the result is long.
func (d *dag) gemv(x, out dagView) dagOp {
	return d.op(ir.GEMV, []dagView{x, {dagWeight, d.IntN(dagOut - out.n + 1), out.n}}, out)
}

// fused normalises into a temporary and multiplies that.
func (d *dag) fused(sm int, ops []dagOp) []dagOp {
	x := d.read(sm, dagWidth)
	out, ok := d.place(sm, 4, x)
	if !ok {
		return ops
	}
	temp := ir.Operand{Buf: "%n" + string(rune('0'+len(ops)))}
	norm := d.op(ir.RMSNORM, []dagView{x, {dagNorm, 0, dagWidth}}, out)
	norm.Out, norm.OutBuf, norm.writes = []ir.Operand{temp}, []int{-1}, nil
	product := d.gemv(x, out)
	product.In[0], product.InBuf[0], product.reads = temp, -1, product.reads[1:]
	return append(ops, norm, product)
}

// appendRow appends a row to a cache, at any row that the interval of positions leaves room for.
func (d *dag) appendRow(sm int, ops []dagOp) []dagOp {
	row := dagView{dagKeys + d.IntN(2), d.flat.Lo, 1}
	if room := dagRows - d.flat.Hi; !chance(d.Rand, 3) {
		row.lo += d.IntN(min(2, room))
	} else {
		row.lo += d.IntN(room)
	}
	return append(ops, d.op(ir.KVAppend, []dagView{d.read(sm, d.bufs[row.buf].stride)}, row))
}

// attention reads the rows of both caches that are defined by now, or some of them; where there are none, it appends
// one.
func (d *dag) attention(sm int, ops []dagOp) []dagOp {
	rows := 0
	for rows < dagRows-(d.flat.Hi-d.flat.Lo) && d.defined(dagView{dagKeys, rows, 1}) &&
		d.defined(dagView{dagValues, rows, 1}) {
		rows++
	}
	if rows == 0 {
		return d.appendRow(sm, ops)
	}
	first := 0
	if chance(d.Rand, 2) {
		first = d.IntN(rows)
	}
	q := d.read(sm, dagWidth)
	out, ok := d.place(sm, dagWidth, q)
	if !ok {
		return ops
	}
	o := d.op(ir.ATTENTION, []dagView{q, {dagKeys, first, rows - first}, {dagValues, first, rows - first}}, out)
	o.Params = []ir.Param{
		ir.IntParam("head_dim", ir.Int(dagHead)), ir.IntParam("n_heads", ir.Int(dagHeads)),
		ir.IntParam("n_kv_heads", ir.Int(d.bufs[dagKeys].stride/dagHead)), ir.FloatParam("scale", 0.5),
	}
	return append(ops, o)
}

// random places are tried this often before something simpler is taken.
const dagTries = 8

// read returns a view of n elements that hold something. The input has them if nothing else is found.
func (d *dag) read(sm, n int) dagView {
	for range dagTries {
		if v, ok := d.somewhere(sm, n); ok && d.defined(v) {
			return v
		}
	}
	return dagView{dagInput, d.IntN(2*dagWidth - n + 1), n}
}

// place returns a view of n elements to write that shares no memory with others.
func (d *dag) place(sm, n int, others ...dagView) (dagView, bool) {
tries:
	for range dagTries {
		v, ok := d.somewhere(sm, n)
		if !ok {
			continue
		}
		for _, w := range others {
			if d.overlap(v, w) {
				continue tries
			}
		}
		return v, true
	}
	return dagView{}, false
}

// somewhere is a random view of n elements of scratch, of the SM's own part if it is on chip. Half of them start at a
// multiple of four, so that views meet as well as overlap.
func (d *dag) somewhere(sm, n int) (dagView, bool) {
	buf := pick(d.Rand, d.scratch)
	b := &d.bufs[buf]
	size, base := b.size, 0
	if b.onChip {
		if sm < 0 {
			return dagView{}, false
		}
		size, base = dagWidth, sm*dagWidth
	}
	lo := d.IntN(max(1, size-n+1))
	if chance(d.Rand, 2) {
		lo = lo / 4 * 4
	}
	return dagView{buf, base + lo, n}, n <= size
}
