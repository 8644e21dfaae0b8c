package validate

import (
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/op"
)

// extent says how the length of a range depends on pos.
type extent uint8

const (
	fixed    extent = iota // the same at every position
	optional               // one element or none, by position
	varying                // anything
)

// view is an operand's shape as far as opcodes care: rows x last elements, where a dimension whose extent is not fixed
// counts as one element.
type view struct {
	rows, last int
	ext        extent
	dim        int // the dimension that is not fixed; -1 when there are two
	buf        int // -1: a temporary
	dtype      ir.DType
	known      bool // false for a temporary that no earlier op of the task wrote
}

func (v *view) n() int { return v.rows * v.last }

// opCheck is what the rules about operands work on.
type opCheck struct {
	temps temporaries // of the current task
	views [2][]view   // inputs and outputs of the current op
	args  arguments   // of that op, which its declaration looks at
	call  op.Call
	lens  []int // of the tables and caches among them

	declared *op.Param // a parameter that moves, and what it was when it was found right last
	moving   ir.Expr
}

// checkOperands: every view lies inside its buffer at every position, nothing read-only is written, temporaries are
// written before they are read, and operand shapes and dtypes agree with the opcode.
func (p *Proof) checkOperands() {
	for t := range p.flat.Tasks {
		if p.Root(t) != t {
			continue
		}
		found := p.errors
		if !p.checkTaskOperands(int32(t), &p.flat.Tasks[t]) {
			return
		}
		p.bodies.settle(t, p.errors == found)
	}
}

// checkTaskOperands reports whether there is room for more errors.
func (p *Proof) checkTaskOperands(t int32, task *ir.Task) bool {
	p.ops.temps.reset()
	before := p.errors
	in, out := p.ops.views[0][:0], p.ops.views[1][:0]
	for k := range task.Ops {
		op := &task.Ops[k]
		p.ops.args = arguments{op, p.flat.Lo}
		p.ops.call.Begin(&p.ops.args, len(op.Out))
		form := ir.Ops[op.Code].Form(len(op.In), &p.ops.args)
		in, out = in[:0], out[:0]
		for i := range op.In {
			in = append(in, p.operand(task, op, &op.In[i], op.InBuf[i]))
			p.checkScaledRows(task, op, &op.In[i], op.InBuf[i], form.Input(i).Role)
		}
		for i := range op.Out {
			b := op.OutBuf[i]
			if b < 0 {
				out = append(out, view{buf: -1, dtype: temporaryType(form.Output(i), in)})
				continue
			}
			out = append(out, p.operand(task, op, &op.Out[i], b))
			p.countAppended(form, &op.Out[i], &out[i], i)
			p.checkScaledRows(task, op, &op.Out[i], b, form.Output(i).Role)
			if buf := &p.flat.Buffers[b]; buf.Kind.ReadOnly() {
				p.Errorf(CodeReadOnly, taskPos(task), "%s writes %s, a %s, which no task of a step may write", op.Code,
					buf.Name, buf.Kind).Suggest("write to an ACTIVATION")
			} else if buf.DType.Bits() < 8 {
				p.Errorf(CodeLayout, taskPos(task), "%s writes %s of %s, whose elements share bytes; only whole "+
					"bytes can be written", op.Code, buf.Name, buf.DType)
			}
		}
		if p.Full() {
			return false
		}
		if p.errors > before {
			break // what follows in this task would only be consequences
		}
		result := p.checkShapes(task, op, form, in, out)
		p.noteIndices(t, k, op, in, out)
		for i := range op.Out {
			if op.OutBuf[i] < 0 {
				result.dtype = out[i].dtype
				p.ops.temps.set(op.Out[i].Buf, result)
			}
		}
	}
	p.ops.views = [2][]view{in, out}
	return true
}

// operand checks the bounds of a view and returns its shape.
func (p *Proof) operand(task *ir.Task, op *ir.FlatOp, o *ir.Operand, buf int) view {
	if buf < 0 {
		v := p.ops.temps.get(o.Buf)
		if !v.known {
			p.Errorf(CodeUndefined, taskPos(task), "%s reads temporary %s before an op of the task writes it", op.Code,
				o.Buf).Suggest("list the op that writes it first")
		}
		return v
	}
	b := &p.flat.Buffers[buf]
	p.checkOwnCache(task, b, o)
	v := view{rows: 1, last: 1, buf: buf, dtype: b.ValueType(), known: true, dim: -1}
	for d := range o.Dims {
		n, ext := p.rangeInside(task, b, o, d)
		if ext != fixed {
			if v.ext == fixed {
				v.dim = d
			} else {
				v.dim = -1
			}
			v.ext = max(v.ext, ext)
		}
		if d == len(o.Dims)-1 {
			v.last = n
		} else {
			v.rows *= n
		}
	}
	return v
}

// checkScaledRows: a row of integers shares a scale, which its view does not say. An op that touches the row has all of
// it, and knows of the scale.
func (p *Proof) checkScaledRows(task *ir.Task, o *ir.FlatOp, of *ir.Operand, buf int, role op.Role) {
	if buf < 0 || !p.flat.Buffers[buf].ScaledRows() {
		return
	}
	b := &p.flat.Buffers[buf]
	if (role != op.Cache || o.Code != ir.ATTENTION) && role != op.Appended {
		p.Errorf(CodeLayout, taskPos(task), "%s touches %s, whose rows are %s with a scale; ATTENTION_TILE looks at "+
			"such rows and KV_APPEND writes them, and no other op does", o.Code, b.Name, b.DType)
		return
	}
	d := len(of.Dims) - 1
	lo, ok1 := of.Dims[d].Lo.IsConst()
	hi, ok2 := of.Dims[d].Hi.IsConst()
	if !ok1 || !ok2 || lo != 0 || hi != b.Shape[d] || of.Dims[d].Shared() {
		p.Errorf(CodeLayout, taskPos(task), "%s touches %s, a part of rows of %s that share a scale; want whole rows "+
			"of %d elements", o.Code, of, b.DType, b.Shape[d])
	}
}

// checkOwnCache: the position of a sequence says nothing of the caches of others.
func (p *Proof) checkOwnCache(task *ir.Task, b *ir.Buffer, o *ir.Operand) {
	if b.Kind != ir.KVCache || p.flat.Pass.NumSequences() == 1 {
		return
	}
	s, _ := ir.Sequence(o.Dims)
	lo, ok1 := o.Dims[0].Lo.IsConst()
	hi, ok2 := o.Dims[0].Hi.IsConst()
	if s < 0 || ok1 && ok2 && lo == s && hi == s+1 {
		return
	}
	p.Errorf(CodeSequence, taskPos(task), "view %s goes by the position of sequence %d, and is of the cache of "+
		"another one", o, s).Suggest("take the position of the sequence whose cache it is")
}

// rangeInside checks one range of a view against its dimension at every position, and returns its length (1 when that
// is not fixed). A range that is empty at a position touches nothing there, wherever it lies.
func (p *Proof) rangeInside(task *ir.Task, b *ir.Buffer, o *ir.Operand, d int) (int, extent) {
	r, size := &o.Dims[d], b.Shape[d]
	if !r.Shared() { // nearly all ranges are an interval of constants
		if lo, ok := r.Lo.IsConst(); ok {
			if hi, ok := r.Hi.IsConst(); ok {
				return p.intervalInside(task, b, d, r, lo, hi), fixed
			}
		}
	}
	if r.Shared() && !p.partInside(task, b, r) {
		return 1, varying
	}
	f := p.flat
	lo, ok1 := r.Lo.IsConst()
	hi, ok2 := r.Hi.IsConst()
	_, ok3 := r.Part.IsConst()
	if ok1 && ok2 && (ok3 || !r.Shared()) || f.Lo == f.Hi {
		if lo, hi = r.Lo.At(f.Lo), r.Hi.At(f.Lo); lo < hi && (lo < 0 || hi > size) {
			p.outside(task, b, d, r, f.Lo)
			return 1, fixed
		}
		return r.Len(f.Lo), fixed
	}
	if n, ext, ok := p.affineInside(r, size); ok {
		return n, ext
	}
	// The ends first: most mistakes show there.
	for _, pos := range []int{f.Lo, f.Hi} {
		if !p.insideAt(r, size, pos) {
			p.outside(task, b, d, r, pos)
			return 1, varying
		}
	}
	shortest, longest := r.Len(f.Lo), 0
	for pos := f.Lo; pos <= f.Hi; pos++ {
		if !p.spend(&p.work.evals, 1, maxEvals, "evaluations of a bound that is not affine in pos", noTask) {
			break
		}
		if !p.insideAt(r, size, pos) {
			p.outside(task, b, d, r, pos)
			break
		}
		n := r.Len(pos)
		shortest, longest = min(shortest, n), max(longest, n)
	}
	if shortest == longest && !r.Shared() {
		return longest, fixed
	}
	if longest <= 1 {
		return 1, optional
	}
	return 1, varying
}

// intervalInside checks [lo, hi) against dimension d, and returns its length, or 1 if it is outside.
func (p *Proof) intervalInside(task *ir.Task, b *ir.Buffer, d int, r *ir.Range, lo, hi int) int {
	switch {
	case hi <= lo:
		return 0
	case lo < 0 || hi > b.Shape[d]:
		p.outside(task, b, d, r, p.flat.Lo)
		return 1
	}
	return hi - lo
}

// affineInside reports whether a range lies inside a dimension at every position, and how long it is then, where that
// can be said at the ends of intervals on which its bounds are affine in pos: what holds there holds in between.
func (p *Proof) affineInside(r *ir.Range, size int) (n int, ext extent, ok bool) {
	intervals, ok := ir.AffineIntervals(p.flat.Lo, p.flat.Hi, r.Lo, r.Hi)
	if !ok {
		return 0, 0, false
	}
	shortest, longest := math.MaxInt, 0
	for _, i := range intervals {
		lo1, hi1 := r.Lo.At(i.From), r.Hi.At(i.From)
		lo2, hi2 := r.Lo.At(i.To), r.Hi.At(i.To)
		empty := hi1 <= lo1 && hi2 <= lo2
		if !empty && (min(lo1, lo2) < 0 || max(hi1, hi2) > size) {
			return 0, 0, false // or else it is empty where it is outside
		}
		shortest, longest = min(shortest, hi1-lo1, hi2-lo2), max(longest, hi1-lo1, hi2-lo2)
	}
	switch {
	case max(0, shortest) == longest && !r.Shared():
		return longest, fixed, true
	case longest <= 1:
		return 1, optional, true
	default:
		return 1, varying, true
	}
}

func (p *Proof) insideAt(r *ir.Range, size, pos int) bool {
	lo, hi := r.Lo.At(pos), r.Hi.At(pos)
	return hi <= lo || lo >= 0 && hi <= size
}

// partInside: a share is one of the parts, at every position.
func (p *Proof) partInside(task *ir.Task, b *ir.Buffer, r *ir.Range) bool {
	check := func(pos int) bool {
		part := r.Part.At(pos)
		if part >= 0 && part < r.Parts {
			return true
		}
		p.Errorf(CodeBounds, taskPos(task), "view of %s takes part %d of %d at pos %d, want 0 to %d", b.Name, part,
			r.Parts, pos, r.Parts-1)
		return false
	}
	if _, ok := r.Part.IsConst(); ok {
		return check(p.flat.Lo)
	}
	if _, _, ok := r.Part.Affine(); ok {
		return check(p.flat.Lo) && check(p.flat.Hi)
	}
	for pos := p.flat.Lo; pos <= p.flat.Hi; pos++ {
		if !p.spend(&p.work.evals, 1, maxEvals, "evaluations of a share that is not affine in pos", noTask) ||
			!check(pos) {
			return false
		}
	}
	return true
}

// outside reports a range that leaves its dimension at a position, and from which position on it does.
func (p *Proof) outside(task *ir.Task, b *ir.Buffer, d int, r *ir.Range, pos int) {
	size, at := b.Shape[d], ""
	last, grows := p.lastInside(r, size, pos)
	if grows {
		pos = last + 1
	}
	if p.flat.Lo != p.flat.Hi {
		at = fmt.Sprintf(" at pos %d", pos)
	}
	lo, hi := r.Lo.At(pos), r.Hi.At(pos)
	e := p.Errorf(CodeBounds, taskPos(task), "view of %s covers [%d, %d) of dimension %d%s, which has %d elements",
		b.Name, lo, hi, d, at, size)
	e.Buffer, e.Position = b.Name, &pos
	switch {
	case lo < 0:
		e.Suggest("begin the view at 0")
	case grows:
		e.Suggest("end the interval of positions at %d, or make the dimension %d", last, r.Hi.At(p.flat.Hi))
	default:
		e.Suggest("end the view at %d, or make the dimension %d", size, hi)
	}
}

// lastInside returns the last position at which a range lies inside a dimension before it leaves it for good, if that
// is so: it is inside at first, and not at pos.
func (p *Proof) lastInside(r *ir.Range, size, pos int) (int, bool) {
	lo, hi := p.flat.Lo, pos // inside at lo, outside at hi
	_, _, ok := r.Hi.Affine()
	if !ok || !p.insideAt(r, size, lo) {
		return 0, false
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; p.insideAt(r, size, mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, true
}

// temporaries are the values of one task, by name. Few tasks have more than three, so that a list is searched; a map
// takes over where a task has many.
type temporaries struct {
	names []string
	views []view
	index map[string]int // nil up to manyTemporaries
}

const manyTemporaries = 16

func (t *temporaries) reset() { t.names, t.views, t.index = t.names[:0], t.views[:0], nil }

func (t *temporaries) set(name string, v view) {
	if i := t.find(name); i >= 0 {
		t.views[i] = v
		return
	}
	t.names, t.views = append(t.names, name), append(t.views, v)
	switch n := len(t.names); {
	case t.index != nil:
		t.index[name] = n - 1
	case n > manyTemporaries:
		t.index = make(map[string]int, 2*n)
		for i, s := range t.names {
			t.index[s] = i
		}
	}
}

// get returns the view of a temporary, unknown if no op before has written it.
func (t *temporaries) get(name string) view {
	if i := t.find(name); i >= 0 {
		return t.views[i]
	}
	return view{}
}

func (t *temporaries) find(name string) int {
	if t.index != nil {
		if i, ok := t.index[name]; ok {
			return i
		}
		return -1
	}
	for i, s := range t.names {
		if s == name {
			return i
		}
	}
	return -1
}
