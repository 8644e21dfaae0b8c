package population

import (
	"slices"

	"amkc/ir"
)

// What an opcode takes: lengths and ranks of its operands, their number, and the values of its parameters.
var operandOperators = []Operator{
	operator("resize-operand", ruleOperands, func(d *draft) bool {
		return d.changeRange(anyUse, func(r *ir.Range, extent int) {
			lo, _ := r.Lo.IsConst()
			lo = max(0, min(lo, extent))
			old := *r
			*r = ir.Span(ir.Int(lo), ir.Int(lo+pick(d.r, []int{0, 1, 2, d.r.IntN(extent + 1), extent})%(extent-lo+1)))
			if r.String() == old.String() {
				r.Hi = r.Hi.Sub(ir.Int(1))
			}
		})
	}),
	operator("empty-operand", ruleOperands, func(d *draft) bool {
		return d.changeRange(anyUse, func(r *ir.Range, _ int) { r.Hi = r.Lo })
	}),
	operator("operand-of-another-rank", ruleOperands, func(d *draft) bool { return d.reshape(true) }),
	operator("operand-of-another-shape", ruleOperands, func(d *draft) bool { return d.reshape(false) }),
	operator("temporary-of-another-shape", ruleOperands, func(d *draft) bool {
		at, ok := d.findOp(func(o *ir.Op) bool {
			return len(o.In) > 0 &&
				slices.ContainsFunc(o.Out, ir.Operand.IsTemp)
		})
		if !ok {
			return false
		}
		o := d.own(at)
		for i := range o.In {
			if n := len(o.In[i].Dims); n > 0 {
				o.In[i].Dims[n-1].Hi = o.In[i].Dims[n-1].Hi.Sub(ir.Int(1 + d.r.IntN(2)))
			}
		}
		return true
	}),
	operator("one-operand-more", ruleOperands, func(d *draft) bool {
		at, ok := d.findOp(func(o *ir.Op) bool { return len(o.In) > 0 })
		if ok {
			o := d.own(at)
			i := d.r.IntN(len(o.In))
			o.In = append(o.In, o.In[i])
			if d.flat != nil {
				f := &d.flat.Tasks[at.unit].Ops[at.op]
				f.InBuf = append(f.InBuf, f.InBuf[i])
			}
		}
		return ok
	}),
	operator("swap-operands", ruleOperands, func(d *draft) bool {
		differs := func(o *ir.Op, i int) bool { return o.In[i].String() != o.In[0].String() }
		at, ok := d.findOp(func(o *ir.Op) bool {
			return d.find(len(o.In), func(i int) bool { return differs(o, i) }) >= 0
		})
		if ok {
			o := d.own(at)
			i := d.find(len(o.In), func(i int) bool { return differs(o, i) })
			o.In[0], o.In[i] = o.In[i], o.In[0]
			if d.flat != nil {
				f := &d.flat.Tasks[at.unit].Ops[at.op]
				f.InBuf[0], f.InBuf[i] = f.InBuf[i], f.InBuf[0]
			}
		}
		return ok
	}),
	operator("another-size", ruleOperands, func(d *draft) bool {
		return d.changeParamsOf(sizes, func(p *ir.Param) {
			old := p.Int
			for p.Int.Equal(old) {
				p.Int = ir.Int(pick(d.r, numbers))
			}
		})
	}),
	operator("half-or-double-size", ruleOperands, func(d *draft) bool {
		return d.changeParamsOf(sizes, func(p *ir.Param) {
			old := p.Int
			if p.Int = old.Mul(2); d.r.IntN(2) == 0 {
				p.Int = old.Div(2)
			}
			if p.Int.Equal(old) { // zero
				p.Int = ir.Int(2)
			}
		})
	}),
	operator("part-or-whole", ruleOperands, func(d *draft) bool {
		at, ok := d.findOp(func(o *ir.Op) bool { return o.Code == ir.ArgMax })
		if ok {
			o := d.own(at)
			i := slices.IndexFunc(o.Params, func(p ir.Param) bool { return p.Key == "partial" })
			if i < 0 {
				o.Params = append(o.Params, intParam("partial", 1))
			} else {
				o.Params[i].Int = ir.Int(1).Sub(o.Params[i].Int)
			}
		}
		return ok
	}),
}

// sizes are the parameters that operands have to agree with.
var sizes = []string{"head_dim", "n_heads", "n_kv_heads", "group", "splits", "first", "limit", "order", "flags",
	"parts", "block", "part"}

// changeParamsOf changes one integer parameter with one of the given names.
func (d *draft) changeParamsOf(keys []string, change func(*ir.Param)) bool {
	known := func(p ir.Param) bool { return !p.IsFloat && slices.Contains(keys, p.Key) }
	at, ok := d.findOp(func(o *ir.Op) bool { return slices.ContainsFunc(o.Params, known) })
	if ok {
		o := d.own(at)
		k := d.find(len(o.Params), func(k int) bool { return known(o.Params[k]) })
		change(&o.Params[k])
	}
	return ok
}

// reshape makes a read-only operand the whole of a buffer of its own: with as many elements in another number of
// dimensions, or with its dimensions in another order or of other lengths.
func (d *draft) reshape(rank bool) bool {
	x, found := d.findView(func(x use) bool {
		return !x.write && x.buf.Kind.ReadOnly() && x.buf.Count == 0 && len(x.dims) == len(x.buf.Shape) &&
			constantLengths(x.dims) != nil
	})
	if !found {
		return false
	}
	lengths := constantLengths(x.dims)
	last := len(lengths) - 1
	switch {
	case rank && last < 3 && (last == 0 || d.r.IntN(2) == 0):
		lengths = slices.Insert(lengths, d.r.IntN(last+2), 1)
		if n := lengths[len(lengths)-1]; n%2 == 0 &&
			d.r.IntN(2) == 0 { // a dimension of two in the place of the one of one
			lengths[len(lengths)-1] /= 2
			lengths[slices.Index(lengths, 1)] = 2
		}
	case rank && last > 0:
		lengths = append(lengths[:last-1], lengths[last-1]*lengths[last])
	case last > 0 && d.r.IntN(2) == 0:
		lengths[0], lengths[last] = lengths[last], lengths[0]
	default:
		i := d.r.IntN(len(lengths))
		lengths[i] = pick(d.r, []int{1, 2 * lengths[i], (lengths[i] + 1) / 2, lengths[i] + 1})
	}
	b := *x.buf
	b.Name, b.Shape, b.Layout, b.Pieces = "reshaped", lengths, ir.Layout{}, nil
	for d.bufferNamed(b.Name) >= 0 {
		b.Name += "+"
	}
	if d.pass().Wants(&b) != "" { // wrong, but of the program and not of the op
		return false
	}
	d.buffers = append(d.buffers, b)
	v := d.ownView(x.viewAt)
	v.Buf, v.Dims = b.Name, nil
	for _, n := range lengths {
		v.Dims = append(v.Dims, ir.Span(ir.Int(0), ir.Int(n)))
	}
	if d.flat != nil {
		d.flat.Tasks[x.unit].Ops[x.opAt.op].InBuf[x.arg] = len(d.buffers) - 1
	}
	return true
}

// constantLengths returns the lengths of ranges between constants that are not empty; nil if there are others.
func constantLengths(dims []ir.Range) []int {
	var out []int
	for _, r := range dims {
		lo, ok1 := r.Lo.IsConst()
		hi, ok2 := r.Hi.IsConst()
		if !ok1 || !ok2 || hi <= lo || r.Shared() {
			return nil
		}
		out = append(out, hi-lo)
	}
	return out
}
