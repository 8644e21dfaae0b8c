package passes

import (
	"fmt"
	"slices"

	"amkc/ir"
)

// tokens builds the shapes, views and positions of a pass. A pass of one token has no axis of tokens.
type tokens struct{ ir.Pass }

func tokensOf(p ir.Pass) tokens { return tokens{p} }

// withTokens returns dimensions with that of the tokens inserted, where there are several.
func withTokens[T any](t tokens, dims []T, i int, tokens T) []T {
	if t.NumTokens() == 1 {
		return dims
	}
	return slices.Insert(dims, i, tokens)
}

// shape is that of a value of n elements per token.
func (t tokens) shape(n int) []int {
	return withTokens(t, []int{n}, 0, t.NumTokens())
}

// caches is the shape of the caches of all sequences, of which one has the given shape.
func (t tokens) caches(shape []int) []int {
	if t.NumSequences() == 1 {
		return shape
	}
	return append([]int{t.NumSequences()}, shape...)
}

// view is of a part of the value of every token.
func (t tokens) view(buf string, part ir.Range) ir.Operand {
	return view(buf, withTokens(t, []ir.Range{part}, 0, upTo(t.NumTokens()))...)
}

// shapePerSM is that of an element of every token on each SM, and perSM a view of those of one SM or of some.
func (t tokens) shapePerSM(sms int) []int {
	return withTokens(t, []int{sms}, 1, t.NumTokens())
}

func (t tokens) perSM(buf string, sms ir.Range) ir.Operand {
	return view(buf, withTokens(t, []ir.Range{sms}, 1, upTo(t.NumTokens()))...)
}

// A positioned part is rows of a pass that are looked up together: a view of a table by position is of one sequence.
type positioned struct {
	tokens
	rows ir.Range
	pos  ir.Expr // of the first of them
	temp string  // a name for what they are on the way
}

// positioned are the rows of each sequence, if bySequence says that they are wanted by position, or else all of them.
func (t tokens) positioned(bySequence bool) (parts []positioned) {
	if !bySequence || t.NumSequences() == 1 {
		return []positioned{{t, upTo(t.NumTokens()), pos, "%e"}}
	}
	for s := range t.NumSequences() {
		rows := at(ir.Int(s), t.NumRows(), 0)
		parts = append(parts, positioned{t, rows, ir.PosOf(ir.Int(s)), fmt.Sprintf("%%e%d", s)})
	}
	return parts
}

// view is of a part of the values of the rows.
func (p positioned) view(buf string, part ir.Range) ir.Operand {
	return view(buf, withTokens(p.tokens, []ir.Range{part}, 0, p.rows)...)
}

// product is the op that multiplies the vectors of all tokens by a matrix.
func (t tokens) product() ir.Opcode {
	if t.NumTokens() == 1 {
		return ir.GEMV
	}
	return ir.GEMM
}

// position is that of each token: rows of a sequence follow one another.
func (t tokens) position() ir.Expr {
	row, rows := ir.Symbol(ir.Row), t.NumRows()
	switch {
	case t.NumTokens() == 1:
		return pos
	case t.NumSequences() == 1:
		return pos.Add(row)
	case rows == 1:
		return ir.PosOf(row)
	}
	return ir.PosOf(row.Div(rows)).Add(row.Mod(rows))
}

// A sequence is what a task works on that is of one head of one sequence.
type sequence struct {
	tokens
	number ir.Expr // of the sequence
	head   ir.Expr
	pos    ir.Expr // of its first row
}

// sequence takes a task's number apart: the heads of a sequence stand side by side.
func (t tokens) sequence(task ir.Expr, heads int) sequence {
	if t.NumSequences() == 1 {
		return sequence{t, ir.Int(0), task, pos}
	}
	number := task.Div(heads)
	return sequence{t, number, task.Mod(heads), ir.PosOf(number)}
}

// view is of a part of the values of the sequence's tokens.
func (s sequence) view(buf string, part ir.Range) ir.Operand {
	return view(buf, withTokens(s.tokens, []ir.Range{part}, 0, at(s.number, s.NumRows(), 0))...)
}

// cache is of rows of keys or values in the sequence's cache.
func (s sequence) cache(buf string, rows ir.Range, isV, headDim int) ir.Operand {
	dims := []ir.Range{ir.Index(s.head), rows, ir.Index(ir.Int(isV)), upTo(headDim)}
	if s.NumSequences() > 1 {
		dims = append([]ir.Range{ir.Index(s.number)}, dims...)
	}
	return view(buf, dims...)
}

// appended are the rows of the cache that a pass appends.
func (s sequence) appended() ir.Range { return ir.Span(s.pos, s.pos.Add(ir.Int(s.NumRows()))) }

// position is that of each row of the sequence.
func (s sequence) position() ir.Expr {
	if s.NumRows() == 1 {
		return s.pos
	}
	return s.pos.Add(ir.Symbol(ir.Row))
}
