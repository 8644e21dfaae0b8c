package ir

import (
	"slices"
	"strconv"
	"strings"
)

// Where positions have learned rows, a pass of several sequences looks the token of each up on its own, and adds the
// row of its position: a view of the table is of one position. A pass of one sequence does both for all of its rows.

// looksUpPositions reports whether ops, two of them or more, begin with a token's row to which that of its position is
// added.
func looksUpPositions(ops []Op) bool {
	if len(ops) < 2 || ops[0].Code != EMBED || ops[1].Code != ADD || len(ops[0].Out) != 1 || len(ops[1].In) != 2 {
		return false
	}
	table := ops[1].In[1].Dims
	return ops[0].Out[0].IsTemp() && len(table) == 2 && table[0].Lo.Uses(Pos)
}

// lookUpOnce leaves what a stage looks up for the first of several sequences, under the name that it has in a pass of
// one.
func (t tokens) lookUpOnce(s *Stage) {
	n := t.NumSequences()
	if n == 1 || len(s.Ops) != 2*n || !looksUpPositions(s.Ops) {
		return
	}
	s.Ops = s.Ops[:2]
	name := strings.TrimSuffix(s.Ops[0].Out[0].Buf, "0")
	s.Ops[0].Out[0].Buf, s.Ops[1].In[0].Buf = name, name
}

// lookUpEach does for each of several sequences what a stage does for all of them. Operands have the axis of tokens.
func (t tokens) lookUpEach(p *Program, axes map[string]int, s *Stage) {
	if t.NumSequences() == 1 || len(s.Ops) != 2 || !looksUpPositions(s.Ops) {
		return
	}
	names := BufferDirectory(p)
	var ops []Op
	for n := range t.NumSequences() {
		for _, o := range s.Ops {
			for _, list := range []*[]Operand{&o.Out, &o.In} {
				*list = slices.Clone(*list)
				for k := range *list {
					of := &(*list)[k]
					of.Dims = slices.Clone(of.Dims)
					if of.IsTemp() {
						of.Buf += strconv.Itoa(n)
						continue
					}
					m, _ := names.Find(of.Buf, 0)
					if axis, has := axes[p.Buffers[m.Declared].Name]; has {
						of.Dims[axis] = Span(Int(n*t.NumRows()), Int((n+1)*t.NumRows()))
					} else {
						for d := range of.Dims {
							of.Dims[d].Lo = of.Dims[d].Lo.With(Pos, PosOf(Int(n)))
							of.Dims[d].Hi = of.Dims[d].Hi.With(Pos, PosOf(Int(n)))
						}
					}
				}
			}
			ops = append(ops, o)
		}
	}
	s.Ops = ops
}
