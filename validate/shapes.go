package validate

import (
	"math"
	"slices"

	"amkc/ir"
	"amkc/ir/op"
	"amkc/validate/views"
)

// arguments are the parameters of an op at the first position; those that shapes depend on are constants.
type arguments struct {
	op  *ir.FlatOp
	pos int
}

func (a *arguments) Int(key string, absent int) int { return a.op.IntAt(key, a.pos, absent) }
func (a *arguments) Has(key string) bool            { return a.op.Has(key) }

// checkShapes: the operands of an op agree with each other and with its parameters, as the op declares. It returns the
// shape of the result, which is that of a temporary.
func (p *Proof) checkShapes(task *ir.Task, o *ir.FlatOp, form *op.Form, in, out []view) (result view) {
	result = view{buf: -1, known: true}
	for i := range in {
		if !in[i].known || in[i].ext != fixed && !p.fixLength(task, o, form, i, &in[i]) {
			return result
		}
	}
	for i := range out {
		if out[i].ext != fixed && !p.fixResult(task, o, form, i, &out[i]) {
			return result
		}
	}
	c, code := &p.ops.call, CodeShapes
	p.fillCall(o, form, in)
	n, last := c.Result(form)
	if c.Problem() == "" && form.Lengths && p.checkSequence(task, o, form) {
		p.checkCaches(o, form, in)
	}
	if c.Problem() == "" && form.Shape != nil {
		p.checkResults(o, form, out, n)
	}
	if c.Problem() == "" {
		p.checkElements(form, in, out)
		code = CodeDType
	}
	if c.Problem() != "" {
		p.Errorf(code, taskPos(task), "%s: %s", o.Code, c.Problem())
	}
	if result.last = last; last > 0 {
		result.rows = n / last
	}
	return result
}

// fixLength reports whether input i, whose bounds do not say at once that its length is the same at every position,
// has one all the same, or may depend on the position.
func (p *Proof) fixLength(task *ir.Task, o *ir.FlatOp, form *op.Form, i int, v *view) bool {
	rows := -1
	if form.Input(i).Role == op.Cache {
		if rows = rowsOf(&o.In[i]); v.dim == rows {
			return true
		}
	}
	if !p.measure(&o.In[i], v, rows) {
		p.Errorf(CodeShapes, taskPos(task), "the length of input %d of %s depends on pos; only the rows of "+
			"a cache may", i+1, o.Code)
		return false
	}
	return true
}

// countAppended makes the shape of output i that of what is appended: where the view is a share, its interval before it
// is distributed, of which the op ignores what is not its share.
func (p *Proof) countAppended(form *op.Form, o *ir.Operand, v *view, i int) {
	if form.Output(i).Role != op.Appended || v.ext == fixed && !dealt(o) {
		return
	}
	v.rows, v.last, v.ext, v.dim = 1, 1, fixed, -1
	for d := range o.Dims {
		r := ir.Span(o.Dims[d].Lo, o.Dims[d].Hi)
		n, ext, known := p.affineInside(&r, math.MaxInt)
		if !known {
			n, ext = p.lengths(&r)
		}
		if v.ext = max(v.ext, ext); d == len(o.Dims)-1 {
			v.last = n
		} else {
			v.rows *= n
		}
	}
}

// dealt reports whether a view is a share of an interval.
func dealt(o *ir.Operand) bool {
	return slices.ContainsFunc(o.Dims, func(r ir.Range) bool { return r.Shared() })
}

// fixResult is fixLength of output i.
func (p *Proof) fixResult(task *ir.Task, o *ir.FlatOp, form *op.Form, i int, v *view) bool {
	appends := form.Output(i).Role == op.Appended
	if appends && v.ext == optional || !(appends && dealt(&o.Out[i])) && p.measure(&o.Out[i], v, -1) {
		return true
	}
	if !appends {
		p.Errorf(CodeShapes, taskPos(task), "the length of output %d of %s depends on pos; only KV_APPEND may "+
			"write a row or none", i+1, o.Code)
		return false
	}
	if v.ext != optional {
		p.Errorf(CodeShapes, taskPos(task), "%s writes a number of rows that depends on pos, and may be more than "+
			"one; it may be one row or none", o.Code)
		return false
	}
	return true
}

// fillCall shows the inputs to the rule of the op.
func (p *Proof) fillCall(o *ir.FlatOp, form *op.Form, in []view) {
	c := &p.ops.call
	for i := range in {
		c.In = append(c.In, op.View{Rows: in[i].rows, Last: in[i].last, Temp: in[i].buf < 0})
	}
	if !form.Lengths {
		return
	}
	p.ops.lens = p.ops.lens[:0]
	for i := range in {
		if role := form.Input(i).Role; role != op.Cache && role != op.Table {
			continue
		}
		v, from := &c.In[i], len(p.ops.lens)
		for d := range o.In[i].Dims {
			r := &o.In[i].Dims[d]
			if p.ops.lens = append(p.ops.lens, r.Len(p.flat.Lo)); r.Shared() {
				v.Dealt |= 1 << d
			}
		}
		v.Lens = p.ops.lens[from:]
	}
}

// checkResults: every output holds the whole result.
func (p *Proof) checkResults(o *ir.FlatOp, form *op.Form, out []view, n int) {
	for i := range out {
		have := out[i].n()
		if form.Output(i).Role == op.Kept {
			p.checkKept(o, form, i)
			continue
		}
		if out[i].buf < 0 || have == n {
			continue
		}
		if form.Output(i).Role == op.Appended && (have == 0 ||
			(out[i].ext == optional || dealt(&o.Out[i])) && p.alwaysEmpty(&o.Out[i])) {
			continue // nothing is done
		}
		p.ops.call.Fail("output %d has %d elements, want %d, as many as the result", i+1, have, n)
	}
}

// checkSequence: an op looks at the caches of one sequence, and its rows are at that sequence's positions. So what
// holds at one position of all sequences holds wherever each of them is.
func (p *Proof) checkSequence(task *ir.Task, o *ir.FlatOp, form *op.Form) bool {
	of := -1
	for i := range o.In {
		if form.Input(i).Role != op.Cache {
			continue
		}
		s, _ := ir.Sequence(o.In[i].Dims)
		if b := o.InBuf[i]; s < 0 && b >= 0 && p.flat.Buffers[b].Kind == ir.KVCache && p.flat.Pass.NumSequences() > 1 {
			if n, ok := o.In[i].Dims[0].Lo.IsConst(); ok {
				s = n // where it does not depend on a position, it is still of the sequence whose cache it is
			}
		}
		if s >= 0 && of >= 0 && s != of {
			p.Errorf(CodeSequence, taskPos(task), "%s looks at rows of sequence %d and of sequence %d, want those of "+
				"one", o.Code, of, s)
			return false
		}
		of = max(of, s)
	}
	for i := range o.Params {
		e := &o.Params[i].Int
		for t := range p.flat.Pass.NumTokens() {
			if s, _ := e.With(ir.Row, ir.Int(t)).Sequence(); s >= 0 && of >= 0 && s != of {
				p.Errorf(CodeSequence, taskPos(task), "%s has %s=%s, and looks at rows of sequence %d", o.Code,
					o.Params[i].Key, e, of).Suggest("give it the position of that sequence")
				return false
			}
			if !e.Uses(ir.Row) {
				break
			}
		}
	}
	return true
}

// rowsOf is the dimension that counts rows in a view of keys or values.
func rowsOf(o *ir.Operand) int { return op.RowsOf(len(o.Dims)) }

// checkCaches: the caches that an op looks at have as many rows, at every position. Rows that several tasks share are
// distributed as the parameters say, which determine whose the new row is.
func (p *Proof) checkCaches(o *ir.FlatOp, form *op.Form, in []view) {
	first := -1
	for i := range in {
		switch {
		case form.Input(i).Role != op.Cache:
		case first < 0:
			first = i
		default:
			p.equalRows(o, first, i, in[first].ext == fixed && in[i].ext == fixed)
		}
	}
	if first >= 0 {
		p.checkShare(&o.In[first].Dims[rowsOf(&o.In[first])])
	}
}

func (p *Proof) equalRows(o *ir.FlatOp, i, j int, still bool) {
	k, v := &o.In[i].Dims[rowsOf(&o.In[i])], &o.In[j].Dims[rowsOf(&o.In[j])]
	if views.SameRange(k, v) {
		return
	}
	for pos := p.flat.Lo; pos <= p.flat.Hi; pos++ {
		if n, m := k.Len(pos), v.Len(pos); n != m {
			p.ops.call.Fail("has %d rows of keys and %d of values at pos %d, want as many", n, m, pos)
			return
		}
		if still {
			return
		}
		if !p.spend(&p.work.evals, 1, maxEvals, "positions at which keys and values are compared", noTask) {
			return
		}
	}
}

func (p *Proof) checkShare(r *ir.Range) {
	c := &p.ops.call
	if !r.Shared() {
		r = &ir.Range{Block: 1, Parts: 1}
	}
	parts, block, part := max(1, c.Int("parts", 1)), c.Int("block", 1), c.Int("part", 0)
	if parts == 1 && !r.Shared() {
		return
	}
	_, fixed := r.Part.IsConst()
	if !(fixed && parts == r.Parts && block == r.Block && part == r.Part.At(p.flat.Lo)) {
		c.Fail("the cache rows are part %s of %d in blocks of %d, the parameters say part %d of %d in blocks of %d",
			r.Part, r.Parts, r.Block, part, parts, block)
	}
}

// measure tries every position for a view whose bounds do not say at once that its length stays the same, and notes
// what it finds. It reports whether every dimension but free has one length, which then counts. Only what would be
// refused otherwise is measured.
func (p *Proof) measure(o *ir.Operand, v *view, free int) bool {
	v.rows, v.last, v.ext, v.dim = 1, 1, fixed, -1
	for d := range o.Dims {
		n, ext := p.lengths(&o.Dims[d])
		if d == free {
			n, ext, v.dim = 1, fixed, d
		}
		v.ext = max(v.ext, ext)
		if d == len(o.Dims)-1 {
			v.last = n
		} else {
			v.rows *= n
		}
	}
	steady := v.ext == fixed
	if free >= 0 {
		v.ext = varying
	}
	return steady
}

// alwaysEmpty reports whether a view has no element at any position.
func (p *Proof) alwaysEmpty(o *ir.Operand) bool {
	for pos := p.flat.Lo; pos <= p.flat.Hi; pos++ {
		n := 1
		for d := range o.Dims {
			n = min(n, o.Dims[d].Len(pos))
		}
		if n > 0 || !p.spend(&p.work.evals, 1, maxEvals, "evaluations of the length of a view that depends on pos",
			noTask) {
			return false
		}
	}
	return true
}

// lengths evaluates the length of a range at every position: the length, if it is always the same, or 1.
func (p *Proof) lengths(r *ir.Range) (int, extent) {
	shortest, longest := r.Len(p.flat.Lo), r.Len(p.flat.Lo)
	if !moves(r) {
		return longest, fixed
	}
	for pos := p.flat.Lo + 1; pos <= p.flat.Hi; pos++ {
		if !p.spend(&p.work.evals, 1, maxEvals, "evaluations of the length of a view that depends on pos", noTask) {
			return 1, varying
		}
		n := r.Len(pos)
		shortest, longest = min(shortest, n), max(longest, n)
	}
	switch {
	case shortest == longest:
		return longest, fixed
	case longest <= 1:
		return 1, optional
	}
	return 1, varying
}

// moves reports whether a range depends on pos.
func moves(r *ir.Range) bool {
	return r.Lo.Uses(ir.Pos) || r.Hi.Uses(ir.Pos) || r.Shared() && r.Part.Uses(ir.Pos)
}

// checkElements: indices are I32, everything else is a float; quantised elements are for weights that a qdtype
// describes.
func (p *Proof) checkElements(form *op.Form, in, out []view) {
	c := &p.ops.call
	for i := range in {
		d := in[i].dtype
		switch form.Input(i).Elem {
		case op.Float:
			if !isFloat(d) {
				c.Fail("input %d is %s, want F32, F16 or BF16", i+1, d)
			}
		case op.Index:
			if d != ir.I32 {
				c.Fail("input %d is %s, want I32", i+1, d)
			}
		case op.Quantised:
			if want := ir.DType(c.Int("qdtype", 0)); d != want {
				c.Fail("input %d is %s, want %s, which is what qdtype says", i+1, d, want)
			}
		}
	}
	for i := range out {
		if out[i].buf < 0 {
			continue
		}
		d := out[i].dtype
		switch form.Output(i).Elem {
		case op.Float:
			if !isFloat(d) {
				c.Fail("output %d is %s, want F32, F16 or BF16", i+1, d)
			}
		case op.Index:
			if d != ir.I32 {
				c.Fail("output %d is %s, want I32", i+1, d)
			}
		case op.AsInput:
			if (d == ir.I32) != (in[0].dtype == ir.I32) {
				c.Fail("copies %s to %s", in[0].dtype, d)
			}
		}
	}
}

// temporaryType is what a temporary holds that is a result: F32, or I32 where the op yields indices.
func temporaryType(result *op.Operand, in []view) ir.DType {
	if result.Elem == op.Index || result.Elem == op.AsInput && in[0].dtype == ir.I32 {
		return ir.I32
	}
	return ir.F32
}

func isFloat(d ir.DType) bool { return d == ir.F32 || d == ir.F16 || d == ir.BF16 }
