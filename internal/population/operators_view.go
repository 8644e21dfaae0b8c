package population

import "amkc/ir"

// What a task touches: spans of the views, and which buffer they are of.
var viewOperators = []Operator{
	operator("widen-view", ruleMemory, func(d *draft) bool {
		return d.changeRange(anyUse, func(r *ir.Range, _ int) { r.Hi = r.Hi.Add(ir.Int(1)) })
	}),
	operator("shift-read", ruleRace, func(d *draft) bool {
		return d.changeRange(readUse, func(r *ir.Range, _ int) { shift(r, 1-2*d.r.IntN(2)) })
	}),
	operator("shift-write", ruleRace, func(d *draft) bool {
		return d.changeRange(writeUse, func(r *ir.Range, _ int) { shift(r, 1-2*d.r.IntN(2)) })
	}),
	operator("shrink-read", ruleEdges, func(d *draft) bool {
		return d.changeSpan(readUse, func(r *ir.Range) { r.Hi = r.Hi.Sub(ir.Int(1)) })
	}),
	operator("overlap-spans", ruleRace, func(d *draft) bool {
		return d.changeSpan(writeUse, func(r *ir.Range) { r.Hi = r.Hi.Add(ir.Int(1)) })
	}),
	operator("overlap-spans-below", ruleRace, func(d *draft) bool {
		return d.changeSpan(writeUse, func(r *ir.Range) { r.Lo = r.Lo.Sub(ir.Int(1)) })
	}),
	operator("gap-between-spans", ruleProvenance, func(d *draft) bool {
		return d.changeSpan(writeUse, func(r *ir.Range) { r.Hi = r.Hi.Sub(ir.Int(1)) })
	}),
	operator("shift-spans", ruleRace, func(d *draft) bool {
		by := 1 - 2*d.r.IntN(2)
		return d.changeSpan(writeUse, func(r *ir.Range) { shift(r, by) })
	}),
	operator("past-the-end", ruleMemory, func(d *draft) bool {
		return d.changeRange(anyUse, func(r *ir.Range, extent int) {
			by := extent
			if hi, ok := r.Hi.IsConst(); ok {
				by = extent - hi + 1
			}
			shift(r, by)
		})
	}),
}

func anyUse(use) bool     { return true }
func readUse(x use) bool  { return !x.write && !x.buf.Kind.ReadOnly() }
func writeUse(x use) bool { return x.write }

// shift moves a range, of whatever length.
func shift(r *ir.Range, by int) {
	r.Lo, r.Hi = r.Lo.Add(ir.Int(by)), r.Hi.Add(ir.Int(by))
}

// changeRange changes one range of one view, which is told the extent of its dimension.
func (d *draft) changeRange(ok func(use) bool, change func(r *ir.Range, extent int)) bool {
	x, found := d.findView(func(x use) bool { return len(x.dims) > 0 && len(x.dims) == len(x.buf.Shape) && ok(x) })
	if found {
		k := d.r.IntN(len(x.dims))
		change(&d.ownView(x.viewAt).Dims[k], x.buf.Shape[k])
	}
	return found
}

// changeSpan changes one range of one view and every equal one in the same task, so that the operands of its ops still
// agree: rows of the weight with the elements they make.
func (d *draft) changeSpan(ok func(use) bool, change func(*ir.Range)) bool {
	x, found := d.findView(func(x use) bool { return len(x.dims) > 0 && ok(x) })
	if !found {
		return false
	}
	old := x.dims[d.r.IntN(len(x.dims))]
	equal := func(r *ir.Range) bool { return r.Lo.Equal(old.Lo) && r.Hi.Equal(old.Hi) }
	for k := range d.ops(x.unit) {
		o := d.own(opAt{x.unit, k})
		for _, list := range [][]ir.Operand{o.In, o.Out} {
			for i := range list {
				for n := range list[i].Dims {
					if equal(&list[i].Dims[n]) {
						change(&list[i].Dims[n])
					}
				}
			}
		}
	}
	return true
}

var targetOperators = []Operator{
	operator("read-another-on-the-page", ruleProvenance, func(d *draft) bool {
		return d.redirect(readUse, func(x use, b *ir.Buffer) bool { return sharePage(x.buf, b) && fits(x.dims, b) })
	}),
	operator("read-another-buffer", ruleRace, func(d *draft) bool {
		return d.redirect(readUse, func(x use, b *ir.Buffer) bool { return b.DType == x.buf.DType && fits(x.dims, b) })
	}),
	operator("write-another-buffer", ruleRace, func(d *draft) bool {
		return d.redirect(writeUse, func(x use, b *ir.Buffer) bool {
			return b.DType == x.buf.DType && !b.Kind.ReadOnly() && fits(x.dims, b)
		})
	}),
	operator("write-read-only", ruleProvenance, func(d *draft) bool {
		return d.redirect(writeUse, func(x use,
			b *ir.Buffer) bool {
			return b.Kind.ReadOnly() && len(b.Shape) == len(x.dims)
		})
	}),
	operator("read-without-buffer", ruleStructure, func(d *draft) bool {
		x, found := d.findView(readUse)
		if found {
			v := d.ownView(x.viewAt)
			*v = ir.Operand{Buf: "%nothing"}
			if d.flat != nil {
				d.flat.Tasks[x.unit].Ops[x.opAt.op].InBuf[x.arg] = -1
			}
		}
		return found
	}),
	operator("alias-operands", ruleRace, func(d *draft) bool {
		in, found := d.findView(func(x use) bool { return readUse(x) && len(x.op.Out) > 0 && len(x.dims) > 0 })
		if !found {
			return false
		}
		at := viewAt{in.opAt, true, d.r.IntN(len(in.op.Out))}
		inPlace := d.bufferOf(at) == in.of
		d.own(at.opAt)
		from := *d.view(in.viewAt)
		to := d.view(at)
		to.Buf = from.Buf
		to.Dims = append([]ir.Range(nil), from.Dims...)
		if inPlace || d.r.IntN(2) == 0 {
			shift(&to.Dims[len(to.Dims)-1], 1)
		}
		if d.flat != nil {
			d.flat.Tasks[at.unit].Ops[at.opAt.op].OutBuf[at.arg] = in.of
		}
		return true
	}),
}

// redirect makes a view one of another buffer that is fit for it.
func (d *draft) redirect(ok func(use) bool, fit func(x use, b *ir.Buffer) bool) bool {
	x, found := d.findView(func(x use) bool {
		return ok(x) && d.find(len(d.buffers), func(b int) bool { return b != x.of && fit(x, &d.buffers[b]) }) >= 0
	})
	if found {
		target := d.find(len(d.buffers), func(b int) bool { return b != x.of && fit(x, &d.buffers[b]) })
		d.retarget(x.viewAt, target)
	}
	return found
}

// fits reports whether a view lies inside a buffer, as far as its bounds are constant.
func fits(dims []ir.Range, b *ir.Buffer) bool {
	if len(dims) != len(b.Shape) {
		return false
	}
	for k := range dims {
		if hi, ok := dims[k].Hi.IsConst(); ok && hi > b.Shape[k] {
			return false
		}
	}
	return true
}

func sharePage(a, b *ir.Buffer) bool {
	for _, p := range a.Pages {
		for _, q := range b.Pages {
			if p == q {
				return true
			}
		}
	}
	return false
}
