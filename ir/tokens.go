package ir

import (
	"bytes"
	"fmt"
	"slices"
)

// What a pass of several tokens computes is what a pass of one computes, once for each token: buffers and operands have
// an axis more, and a product is one of several vectors. The tokens are rows of one sequence, of which row t is at
// position pos+t, or a row of each of several sequences, which have caches, positions and units of attention of their
// own (tokens_sequences.go). OneToken and ForTokens go from one to the other. The kernel is emitted from the program of
// one token, with the numbers of the pass beside it, and is read back into it.

// OneToken returns the program of one token that a program of several makes of each of them. Pages and distributions
// stay those of the whole pass, and so do the operands of ATTENTION_COMBINE, each unit of which is of one token. An
// error says that the program does anything else: that [ForTokens] does not lead back to it.
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
		if t.ofSequences(b) {
			if err := t.ofOne(b); err != nil {
				return nil, err
			}
		} else if axis, has := tokenAxis(b, len(b.Shape) == 4); has && axis < len(b.Shape) {
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
				of.Dims = append([]Range{}, d[1:]...)
			case of.axis >= 0 && len(d) == 1:
				d[0] = Index(Int(0))
			case of.axis >= 0 && of.axis < len(d):
				of.Dims = append(append([]Range{}, d[:of.axis]...), d[of.axis+1:]...)
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

// ForTokens returns the program of a pass of several tokens that does for each what a program of one token does: see
// [OneToken]. The pass has several rows or several sequences, and not both. The program is not changed.
func ForTokens(p *Program, pass Pass) (*Program, error) {
	t := tokens{pass}
	switch {
	case t.NumTokens() == 1:
		return p, nil
	case t.NumSequences() > 1 && t.NumRows() > 1:
		return nil, fmt.Errorf("a pass of %d rows of %d sequences; want one of either", t.NumRows(), t.NumSequences())
	}
	all, err := Parse(Print(p), p.Model.Name)
	if err != nil {
		return nil, err
	}
	all.Pass = pass
	axes := map[string]int{}
	for i := range all.Buffers {
		b := &all.Buffers[i]
		axis, has := tokenAxis(b, len(b.Shape) == 3)
		switch {
		case t.ofSequences(b):
			t.ofAll(b)
			continue
		case !has:
			continue
		}
		axes[b.Name] = axis
		if b.Role == RoleToken || b.Role == RoleNext {
			b.Shape = []int{t.NumTokens()}
		} else {
			b.Shape = append(append(append([]int{}, b.Shape[:axis]...), t.NumTokens()), b.Shape[axis:]...)
		}
	}
	each := Span(Int(0), Int(t.NumTokens()))
	t.eachOp(all, axes, false, func(o *Op, u *units, operands []tokenOperand) {
		switch o.Code {
		case GEMV:
			o.Code = GEMM
		case ATTENTION:
			if window := o.Window(); window > 0 && t.NumRows() > 1 { // of one row, the view says it
				behind := slices.IndexFunc(o.Params, func(q Param) bool { return q.Key == "scale" }) + 1
				o.Params = slices.Insert(o.Params, behind, IntParam("window", Int(window)))
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
				of.Dims = append([]Range{Span(Int(0), Int(t.NumSequences()))}, d...)
			case of.axis >= 0 && of.scalar:
				of.Dims = []Range{each}
			case of.axis >= 0 && of.axis <= len(d):
				of.Dims = append(append(append([]Range{}, d[:of.axis]...), each), d[of.axis:]...)
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

// tokenAxis says which dimension of a buffer, as it is in a pass of several rows, the rows have: the first one of
// vectors and of what the host gives and gets, and the second one of what units of attention and SMs have each. Others
// have none.
func tokenAxis(b *Buffer, ofUnits bool) (axis int, has bool) {
	switch {
	case b.Kind == Output, b.Role == RoleToken, b.Role == RoleEmbeddings:
		return 0, true
	case b.Kind != Activation:
		return 0, false
	case ofUnits, b.Space == SMEM && b.DType == I32:
		return 1, true
	}
	return 0, true
}

// tokens are those of a pass.
type tokens struct{ Pass }

// position is that of each token, in parameters that each has for itself.
func (t tokens) position() Expr {
	if t.NumSequences() > 1 {
		return PosOf(Symbol(Row))
	}
	return Symbol(Pos).Add(Symbol(Row))
}

// A tokenOperand is an operand of an op with the dimension that its rows have: axis, if they have one of their own, or
// rows, where they are rows of a cache or a table that begin with that of the position. The other is -1.
type tokenOperand struct {
	*Operand
	axis, rows int
	scalar     bool // one number for each row
	cache      bool // rows of a cache
	settings   bool // of several sequences
}

// eachOp calls f for the ops of a program but ATTENTION_COMBINE, with their operands that are no temporaries, and with
// the units of their stage if these are of one sequence each. Ops of tasks that have a group of rows are given as those
// of tasks with all rows: if they are grouped, they are made that before, and otherwise f's result is grouped.
func (t tokens) eachOp(p *Program, axes map[string]int, grouped bool,
	f func(o *Op, u *units, operands []tokenOperand)) {
	names := BufferDirectory(p)
	for i := range p.Variants {
		p.Variants[i].Each(func(s *Stage, l *Loop) {
			index := 0
			if l != nil {
				index = l.First
			}
			u := t.unitsOf(p, s)
			groups := t.rowGroups(p, s)
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
		cache: b.Kind == KVCache, settings: b.Role == RoleSampling && t.ofSequences(b)}
	if axis, has := axes[b.Name]; has {
		operand.axis = axis
		return operand
	}
	switch d := of.Dims; {
	case o.Code == KVAppend && len(d) == 4:
		operand.rows = 1
	case b.Kind != KVCache && len(d) == 2 && d[0].Lo.Uses(Pos): // a table of positions
		operand.rows = 0
	}
	return operand
}

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
