package ir

import (
	"slices"
	"strings"
)

// Op is one operation of a task. Each output receives the same result, rounded to its own element type (ArgMax with
// partial=1 is the exception: value, then index).
type Op struct {
	Code   Opcode
	Out    []Operand
	In     []Operand
	Params []Param
}

// Operand is a view of a buffer, or a temporary: a name that starts with % and has no dims. A temporary lives in
// registers or shared memory of its task, from the op that writes it to the end of the task; its shape is its value's.
type Operand struct {
	Buf  string
	Dims []Range
}

// IsTemp reports whether the operand is a temporary of its task.
func (o Operand) IsTemp() bool { return strings.HasPrefix(o.Buf, "%") }

// Range is the part of one dimension that a view covers: the elements e of [Lo, Hi) with (e/Block)%Parts == Part.
// Parts 0 or 1 means all of them. Hi <= Lo is the empty range.
type Range struct {
	Lo, Hi Expr
	Block  int
	Parts  int
	Part   Expr
}

// Span returns the range [lo, hi).
func Span(lo, hi Expr) Range { return Range{Lo: lo, Hi: hi} }

// Index returns the range that holds just e.
func Index(e Expr) Range { return Range{Lo: e, Hi: e.Add(Int(1))} }

// Share returns the elements of [lo, hi) that belong to one part of a dimension distributed in blocks.
func Share(lo, hi Expr, block int, part Expr, parts int) Range {
	return Range{Lo: lo, Hi: hi, Block: block, Part: part, Parts: parts}
}

// Shared reports whether the range is distributed in blocks.
func (r Range) Shared() bool { return r.Parts > 1 }

// Bind replaces the symbols of a task.
func (r Range) Bind(t TaskSpan) Range {
	r.Lo, r.Hi, r.Part = r.Lo.Bind(t), r.Hi.Bind(t), r.Part.Bind(t)
	return r
}

// Elements appends the elements of the range at a position to dst, in order.
func (r Range) Elements(dst []int, pos int) []int {
	lo, hi := r.Lo.At(pos), r.Hi.At(pos)
	if !r.Shared() {
		for e := lo; e < hi; e++ {
			dst = append(dst, e)
		}
		return dst
	}
	part := r.Part.At(pos)
	if !r.holds(part) {
		return dst
	}
	period := satMul(r.Block, r.Parts)
	for base := satAdd(satMul(floorDiv(lo, period), period), satMul(part, r.Block)); base < hi; base = satAdd(base,
		period) {
		for e := max(lo, base); e < min(hi, satAdd(base, r.Block)); e++ {
			dst = append(dst, e)
		}
	}
	return dst
}

// Len returns the number of elements of the range at a position.
func (r Range) Len(pos int) int {
	lo, hi := r.Lo.At(pos), r.Hi.At(pos)
	if hi <= lo {
		return 0
	}
	if !r.Shared() {
		return satAdd(hi, -lo)
	}
	part := r.Part.At(pos)
	if !r.holds(part) {
		return 0
	}
	return r.shareBelow(hi, part) - r.shareBelow(lo, part)
}

// holds reports whether there is such a part; a share of no block or with a part outside [0, Parts) is empty.
func (r Range) holds(part int) bool { return r.Block > 0 && part >= 0 && part < r.Parts }

// shareBelow counts the elements of the part in [0, n), or minus those in [n, 0).
func (r Range) shareBelow(n, part int) int {
	period := satMul(r.Block, r.Parts)
	whole := floorDiv(n, period)
	rest := satAdd(n, -satMul(whole, period))
	return satAdd(satMul(whole, r.Block), max(0, min(r.Block, satAdd(rest, -satMul(part, r.Block)))))
}

// Param is a scalar parameter: an integer expression or a float.
type Param struct {
	Key     string
	Int     Expr
	Float   float64
	IsFloat bool
}

// IntParam and FloatParam build parameters.
func IntParam(key string, e Expr) Param      { return Param{Key: key, Int: e} }
func FloatParam(key string, v float64) Param { return Param{Key: key, Float: v, IsFloat: true} }

// param returns the parameter with a key, or nil.
func (o *Op) param(key string) *Param {
	for i := range o.Params {
		if p := &o.Params[i]; p.Key == key {
			return p
		}
	}
	return nil
}

// IntAt returns an integer parameter at a position, or def when it is absent.
func (o *Op) IntAt(key string, pos, def int) int {
	p := o.param(key)
	switch {
	case p == nil:
		return def
	case p.IsFloat:
		return int(p.Float)
	default:
		return p.Int.At(pos)
	}
}

// FloatOr returns a parameter as a float, or def when it is absent.
func (o *Op) FloatOr(key string, def float64) float64 {
	p := o.param(key)
	switch {
	case p == nil:
		return def
	case p.IsFloat:
		return p.Float
	default:
		return float64(p.Int.At(0))
	}
}

// Window is the number of rows of the cache that a position sees in an ATTENTION, including its own, derived from the
// start of the view of the keys; 0 means all. Callers must refuse bounds other than those of a window.
func (o *Op) Window() int {
	const far = 1 << 30 // beyond any window
	if len(o.In) < 2 || len(o.In[1].Dims) < 2 {
		return 0
	}
	lo := o.In[1].Dims[1].Lo
	if _, constant := lo.IsConst(); constant {
		return 0
	}
	return max(0, far-max(0, lo.At(far))+1)
}

// Has reports whether the op has the parameter.
func (o *Op) Has(key string) bool { return o.param(key) != nil }

// Bind returns a copy of the op with the symbols of a task replaced in every view and parameter. The copy shares those
// without symbols.
func (o Op) Bind(t TaskSpan) Op { return newBinder(&o, 1).bind(t) }

// A binder binds an op to spans. All that it makes is in two arrays: a program has tens of thousands of tasks.
type binder struct {
	op              *Op
	out, in, params bool // mention a symbol of a task
	operands        []Operand
	dims            []Range
}

func newBinder(o *Op, spans int) *binder {
	b := &binder{op: o, out: slices.ContainsFunc(o.Out, Operand.ofTask), in: slices.ContainsFunc(o.In, Operand.ofTask),
		params: slices.ContainsFunc(o.Params, func(p Param) bool { return p.Int.ofTask() })}
	operands, dims := 0, 0
	count := func(list []Operand) {
		operands += len(list)
		for _, v := range list {
			if v.ofTask() {
				dims += len(v.Dims)
			}
		}
	}
	if b.out {
		count(o.Out)
	}
	if b.in {
		count(o.In)
	}
	b.operands, b.dims = make([]Operand, spans*operands), make([]Range, spans*dims)
	return b
}

func (b *binder) bind(t TaskSpan) Op {
	o := *b.op
	if b.out {
		o.Out = b.views(o.Out, t)
	}
	if b.in {
		o.In = b.views(o.In, t)
	}
	if b.params {
		o.Params = slices.Clone(o.Params)
		for i := range o.Params {
			o.Params[i].Int = o.Params[i].Int.Bind(t)
		}
	}
	return o
}

func (b *binder) views(list []Operand, t TaskSpan) []Operand {
	n := len(list)
	out := b.operands[:n:n]
	b.operands = b.operands[n:]
	for i, v := range list {
		if v.ofTask() {
			dims := b.dims[:len(v.Dims):len(v.Dims)]
			b.dims = b.dims[len(v.Dims):]
			for d, r := range v.Dims {
				dims[d] = r.Bind(t)
			}
			v.Dims = dims
		}
		out[i] = v
	}
	return out
}

// ofTask reports whether a view mentions a symbol of a task.
func (o Operand) ofTask() bool {
	for i := range o.Dims {
		if r := &o.Dims[i]; r.Lo.ofTask() || r.Hi.ofTask() || r.Part.ofTask() {
			return true
		}
	}
	return false
}
