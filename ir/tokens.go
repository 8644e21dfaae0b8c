package ir

import (
	"bytes"
	"fmt"
	"slices"
)

// What a pass of several tokens computes is what a pass of one computes, once for each token: buffers and operands have
// an axis more, and a product is one of several vectors. The tokens are rows of one sequence, of which row t is at
// position pos+t, or as many rows of each of several sequences, which have caches, positions and units of attention of
// their own (tokens_sequences.go). OneToken and ForTokens go from one to the other. The kernel is emitted from the
// program of one token, with the numbers of the pass alongside it, and is read back into it.

// OneToken returns the program of one token that a program of several tokens applies to each. Pages, distributions and
// the operands of ATTENTION_COMBINE, each unit of which is of one token, stay those of the whole pass. It is an error
// if the program is not of that form: if [ForTokens] of the result differs from it.
func OneToken(p *Program) (*Program, error) {
	t := tokens{p.Pass}
	if t.NumTokens() == 1 {
		return p, nil
	}
	text := Print(p)
	one, err := Parse(text, p.Model.Name)
	if err != nil {
		return nil, err
	}
	one.Pass = Pass{}
	t.eachStage(one, t.lookUpOnce)
	axes := map[string]int{}
	for i := range one.Buffers {
		b := &one.Buffers[i]
		ofUnits := b.Space != SMEM && len(b.Shape) == t.unitDims()
		if t.ofSequences(b, ofUnits) {
			if err := t.ofOne(b); err != nil {
				return nil, err
			}
		}
		if axis, n := t.axis(b, ofUnits, len(b.Shape)-1); n > 0 && axis < len(b.Shape) {
			axes[b.Name] = axis
			b.Shape = append(append([]int{}, b.Shape[:axis]...), b.Shape[axis+1:]...)
			if len(b.Shape) == 0 {
				b.Shape = []int{1}
			}
		}
	}
	t.eachOp(one, axes, true, func(o *Op, u *units, operands []tokenOperand) {
		switch o.Code {
		case GEMM:
			o.Code = GEMV
		case ATTENTION: // of one row, the view says what it sees
			o.Params = slices.DeleteFunc(o.Params, func(q Param) bool { return q.Key == "window" })
		}
		for i := range o.Params {
			if q := &o.Params[i]; !q.IsFloat && q.Int.Equal(t.position()) {
				q.Int = Symbol(Pos)
			}
		}
		if u != nil {
			u.ofOne(o, operands)
			return
		}
		for _, of := range operands {
			switch d := of.Dims; {
			case of.settings && len(d) > 0:
				of.Dims = without(d, 0)
			case of.axis >= 0 && len(d) == 1:
				d[0] = Index(Int(0))
			case of.axis >= 0 && of.axis < len(d):
				of.Dims = without(d, of.axis)
			case of.rows >= 0:
				d[of.rows].Hi = d[of.rows].Lo.Add(Int(1))
			}
		}
	})
	for i := range one.Variants {
		one.Variants[i].Hi += t.NumRows() - 1
	}
	again, err := ForTokens(one, p.Pass)
	if err != nil {
		return nil, err
	}
	if line, want := firstDifference(Print(again), text); line != want {
		return nil, fmt.Errorf("it says %q, and by the other tokens it would be %q", want, line)
	}
	return one, nil
}

// ForTokens returns the program of a pass of several tokens that applies a program of one token to each: see
// [OneToken]. The program is not changed.
func ForTokens(p *Program, pass Pass) (*Program, error) {
	t := tokens{pass}
	if t.NumTokens() == 1 {
		return p, nil
	}
	all, err := Parse(Print(p), p.Model.Name)
	if err != nil {
		return nil, err
	}
	all.Pass = pass
	axes := map[string]int{}
	for i := range all.Buffers {
		b := &all.Buffers[i]
		ofUnits := b.Space != SMEM && len(b.Shape) == 3
		axis, n := t.axis(b, ofUnits, len(b.Shape))
		if t.ofSequences(b, ofUnits) {
			t.ofAll(b)
		}
		if n == 0 {
			continue
		}
		axes[b.Name] = axis
		if b.Role == RoleToken || b.Role == RoleNext {
			b.Shape = []int{n}
		} else {
			b.Shape = append(append(append([]int{}, b.Shape[:axis]...), n), b.Shape[axis:]...)
		}
	}
	each := Span(Int(0), Int(t.NumTokens()))
	t.eachOp(all, axes, false, func(o *Op, u *units, operands []tokenOperand) {
		switch o.Code {
		case GEMV:
			o.Code = GEMM
		case ATTENTION:
			if window := o.Window(); window > 0 && t.NumRows() > 1 { // of one row, the view says it
				at := slices.IndexFunc(o.Params, func(q Param) bool { return q.Key == "scale" }) + 1
				o.Params = slices.Insert(o.Params, at, IntParam("window", Int(window)))
			}
		}
		if u != nil {
			u.ofAll(o, operands)
			return
		}
		for i := range o.Params {
			if q := &o.Params[i]; !q.IsFloat && q.Int.Equal(Symbol(Pos)) {
				q.Int = t.position()
			}
		}
		for _, of := range operands {
			switch d := of.Dims; {
			case of.settings:
				of.Dims = inserted(d, 0, Span(Int(0), Int(t.NumSequences())))
			case of.axis >= 0 && of.scalar:
				of.Dims = []Range{each}
			case of.axis >= 0 && of.axis <= len(d):
				of.Dims = inserted(d, of.axis, each)
			case of.rows >= 0:
				d[of.rows].Hi = d[of.rows].Lo.Add(Int(t.NumRows()))
			}
		}
	})
	t.eachStage(all, func(s *Stage) { t.lookUpEach(all, axes, s) })
	for i := range all.Variants {
		all.Variants[i].Hi -= t.NumRows() - 1
	}
	return all, nil
}

// tokens are those of a pass.
type tokens struct{ Pass }

// axis says which dimension of a buffer, as it is in a pass of several tokens, they have, and of what size: the first
// one of vectors and of what the host gives and gets, and the second one of what SMs have each: numbers, and vectors,
// which are of two dimensions for one token. What units of attention have each has a second one of the rows of their
// sequence, if there are several. Of others n is 0: they have none.
func (t tokens) axis(b *Buffer, ofUnits bool, ofOne int) (axis, n int) {
	switch {
	case b.Kind == Output, b.Role == RoleToken, b.Role == RoleEmbeddings:
		return 0, t.NumTokens()
	case b.Kind != Activation, ofUnits && t.NumRows() == 1:
		return 0, 0
	case ofUnits:
		return 1, t.NumRows()
	case b.Space == SMEM && (b.DType == I32 || ofOne == 2):
		return 1, t.NumTokens()
	}
	return 0, t.NumTokens()
}

// unitDims is how many dimensions has what units of attention have each: units, heads and elements, and in a pass of
// several rows of a sequence these rows.
func (t tokens) unitDims() int {
	if t.NumRows() > 1 {
		return 4
	}
	return 3
}

// position is that of each token, in parameters that each has for itself.
func (t tokens) position() Expr {
	switch row, rows := Symbol(Row), t.NumRows(); {
	case t.NumSequences() == 1:
		return Symbol(Pos).Add(row)
	case rows == 1:
		return PosOf(row)
	default:
		return PosOf(row.Div(rows)).Add(row.Mod(rows))
	}
}

// A tokenOperand is an operand of an op with the dimension that its rows have: axis, if they have one of their own, or
// rows, where they are rows of a cache or a table that begin with that of the position. The other is -1.
type tokenOperand struct {
	*Operand
	axis, rows int
	scalar     bool // one number for each row
	kept       bool // of a sequence, from step to step
	settings   bool // of several sequences
}

// eachOp calls f for the ops of a program but ATTENTION_COMBINE, with their operands that are not temporaries, and with
// the units of their stage if these are of one sequence each. Ops of tasks that have a group of rows are given as those
// of tasks with all rows: if they are grouped, they are made that before, and otherwise f's result is grouped.
func (t tokens) eachOp(p *Program, axes map[string]int, grouped bool,
	f func(o *Op, u *units, operands []tokenOperand)) {
	names := BufferDirectory(p)
	for i := range p.Variants {
		p.Variants[i].Each(func(s *Stage, l *Loop) {
			index := FirstIndex(s, l)
			heads := max(1, p.FactsOf(s, l).keeping())
			u := t.unitsOf(heads, s)
			groups := t.rowGroups(heads, s)
			for k := range s.Ops {
				o := &s.Ops[k]
				if o.Code == AttentionCombine {
					continue
				}
				if groups > 1 && grouped {
					ungroupRows(o, t.Pass, groups)
				}
				var operands []tokenOperand
				for _, list := range [][]Operand{o.Out, o.In} {
					for n := range list {
						m, found := names.Find(list[n].Buf, index)
						if list[n].IsTemp() || !found {
							continue
						}
						operands = append(operands, t.operand(&p.Buffers[m.Declared], axes, &list[n], o))
					}
				}
				f(o, u, operands)
				if groups > 1 && !grouped {
					GroupRows(o, t.Pass, groups)
				}
			}
		})
	}
}

func (t tokens) operand(b *Buffer, axes map[string]int, of *Operand, o *Op) tokenOperand {
	operand := tokenOperand{Operand: of, axis: -1, rows: -1, scalar: b.Role == RoleToken || b.Role == RoleNext,
		kept: b.Kind.OfSequences(), settings: b.Role == RoleSampling && t.NumSequences() > 1}
	if axis, has := axes[b.Name]; has {
		operand.axis = axis
		return operand
	}
	switch d := of.Dims; {
	case o.Code == KVAppend && b.Kind == KVCache && len(d) >= 4:
		operand.rows = len(d) - 3
	case b.Kind != KVCache && len(d) == 2 && d[0].Lo.Uses(Pos): // a table of positions
		operand.rows = 0
	}
	return operand
}

// inserted returns dimensions with one more, and without returns them without one. Theirs may lie between others'.
func inserted(d []Range, at int, r Range) []Range { return slices.Insert(slices.Clone(d), at, r) }
func without(d []Range, at int) []Range           { return slices.Delete(slices.Clone(d), at, at+1) }

// eachStage calls f for the stages of a program.
func (t tokens) eachStage(p *Program, f func(s *Stage)) {
	for i := range p.Variants {
		p.Variants[i].Each(func(s *Stage, _ *Loop) { f(s) })
	}
}

// firstDifference returns the first lines in which two texts differ, or two empty ones.
func firstDifference(a, b []byte) (ofA, ofB string) {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range max(len(x), len(y)) {
		ofA, ofB = "", ""
		if i < len(x) {
			ofA = string(x[i])
		}
		if i < len(y) {
			ofB = string(y[i])
		}
		if ofA != ofB {
			return ofA, ofB
		}
	}
	return "", ""
}
