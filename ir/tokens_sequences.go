package ir

import "fmt"

// What sequences of a pass have for themselves: a cache each, a position each, and units of attention. The units of a
// sequence, which are those of a pass of one token, come before those of the next. Each has all rows of its sequence.

// ofSequences reports whether a buffer has a part for each sequence of a pass of several: caches and the settings of
// SAMPLE, in a dimension of their own, and what units of attention publish, as more of them.
func (t tokens) ofSequences(b *Buffer, ofUnits bool) bool {
	return t.NumSequences() > 1 && (hasSequences(b) || b.Kind == Activation && ofUnits)
}

// hasSequences reports whether the sequences of a pass are a dimension of a buffer.
func hasSequences(b *Buffer) bool { return b.Kind.OfSequences() || b.Role == RoleSampling }

// ofAll makes such a buffer of one sequence that of all, and ofOne the other way round.
func (t tokens) ofAll(b *Buffer) {
	if hasSequences(b) {
		b.Shape = append([]int{t.NumSequences()}, b.Shape...)
		return
	}
	b.Shape = append([]int{b.Shape[0] * t.NumSequences()}, b.Shape[1:]...)
}

func (t tokens) ofOne(b *Buffer) error {
	n := t.NumSequences()
	switch {
	case len(b.Shape) == 0 || b.Shape[0]%n != 0:
		return fmt.Errorf("buffer %s has shape %v; want a part for each of %d sequences", b.Name, b.Shape, n)
	case hasSequences(b):
		b.Shape = b.Shape[1:]
	default:
		b.Shape = append([]int{b.Shape[0] / n}, b.Shape[1:]...)
	}
	return nil
}

// units are those of a stage of attention, of a convolution or of a recurrence, in a pass of several sequences.
type units struct {
	of    Expr // which kv head a unit has, or group of channels, or head of values, of all sequences
	heads int  // of one
	rows  int  // of each sequence
}

// unitsOf returns the units of a stage; nil if it has none, or if all are of one sequence.
func (t tokens) unitsOf(heads int, s *Stage) *units {
	if t.NumSequences() == 1 {
		return nil
	}
	for k := range s.Ops {
		if o := &s.Ops[k]; o.Code == ATTENTION || o.Code == ShortConv || o.Code == StateConv {
			return &units{Symbol(SpanA).Div(max(1, o.IntAt("parts", 0, 1))), heads, t.NumRows()}
		}
	}
	return nil
}

// sequence is that of a unit, and head its kv head, or group.
func (u *units) sequence() Expr { return u.of.Div(u.heads) }
func (u *units) head() Expr     { return u.of.Mod(u.heads) }

// position is that of each row of a unit.
func (u *units) position() Expr {
	if u.rows == 1 {
		return PosOf(u.sequence())
	}
	return PosOf(u.sequence()).Add(Symbol(Row))
}

// ofAll makes an op of units of one token that of units of all sequences: each has the position, the cache and the
// vectors of its sequence, and counts the heads of that.
func (u *units) ofAll(o *Op, operands []tokenOperand) {
	eachExpr(o, func(e Expr) Expr {
		return e.replace(u.of, u.head()).With(Pos, PosOf(u.sequence()))
	})
	for i := range o.Params {
		if q := &o.Params[i]; !q.IsFloat && q.Int.Equal(PosOf(u.sequence())) {
			q.Int = u.position()
		}
	}
	for _, of := range operands {
		if of.rows >= 0 {
			of.Dims[of.rows].Hi = of.Dims[of.rows].Lo.Add(Int(u.rows))
		}
		switch {
		case of.kept:
			of.Dims = inserted(of.Dims, 0, Index(u.sequence()))
		case of.axis == 0:
			first, end := u.sequence(), u.sequence().Add(Int(1))
			of.Dims = inserted(of.Dims, 0, Span(first.Mul(u.rows), end.Mul(u.rows)))
		case of.axis > 0 && of.axis <= len(of.Dims):
			of.Dims = inserted(of.Dims, of.axis, Span(Int(0), Int(u.rows)))
		}
	}
}

// ofOne makes an op of units of all sequences that of units of one token.
func (u *units) ofOne(o *Op, operands []tokenOperand) {
	for _, of := range operands {
		if of.rows >= 0 {
			of.Dims[of.rows].Hi = of.Dims[of.rows].Lo.Add(Int(1))
		}
		if at := max(0, of.axis); (of.kept || of.axis >= 0) && at < len(of.Dims) {
			of.Dims = without(of.Dims, at)
		}
	}
	for i := range o.Params {
		if q := &o.Params[i]; !q.IsFloat && q.Int.Equal(u.position()) {
			q.Int = Symbol(Pos)
		}
	}
	eachExpr(o, func(e Expr) Expr {
		return e.replace(PosOf(u.sequence()), Symbol(Pos)).replace(u.head(), u.of)
	})
}

// eachExpr replaces every expression of an op.
func eachExpr(o *Op, f func(e Expr) Expr) {
	for _, list := range [][]Operand{o.Out, o.In} {
		for i := range list {
			for d := range list[i].Dims {
				r := &list[i].Dims[d]
				r.Lo, r.Hi, r.Part = f(r.Lo), f(r.Hi), f(r.Part)
			}
		}
	}
	for i := range o.Params {
		if q := &o.Params[i]; !q.IsFloat {
			q.Int = f(q.Int)
		}
	}
}

// replace replaces each part of the expression that is `from`, term by term, and folds.
func (e Expr) replace(from, to Expr) Expr {
	switch {
	case e.Equal(from):
		return to
	case e.x == nil:
		return e
	}
	x := e.x.replace(from, to)
	switch e.op {
	case exprMul:
		return x.Mul(e.k)
	case exprDiv:
		return x.Div(e.k)
	case exprMod:
		return x.Mod(e.k)
	case exprPosOf:
		return PosOf(x)
	}
	y := e.y.replace(from, to)
	switch e.op {
	case exprAdd:
		return x.Add(y)
	case exprSub:
		return x.Sub(y)
	default:
		return fold2(e.op, x, y)
	}
}
