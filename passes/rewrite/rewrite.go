// Package rewrite has what passes need to read a program and to change it in place: its stages with their loops, its
// buffers by name, copies of stages, and Prune, which drops what no stage names any more.
package rewrite

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
)

// EachStage calls f for every stage of a variant, in order; loop is nil outside loops.
func EachStage(v *ir.Variant, f func(s *ir.Stage, loop *ir.Loop)) {
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			f(n, nil)
		case *ir.Loop:
			for _, s := range n.Body {
				f(s, n)
			}
		}
	}
}

// CloneStage returns a deep copy of a stage. Expressions are immutable and shared.
func CloneStage(s *ir.Stage) *ir.Stage {
	c := *s
	c.Waits, c.Dist.Spans, c.Ops = slices.Clone(s.Waits), slices.Clone(s.Dist.Spans), slices.Clone(s.Ops)
	for i := range c.Ops {
		op := &c.Ops[i]
		op.Out, op.In, op.Params = cloneViews(op.Out), cloneViews(op.In), slices.Clone(op.Params)
	}
	return &c
}

func cloneViews(views []ir.Operand) []ir.Operand {
	out := slices.Clone(views)
	for i := range out {
		out[i].Dims = slices.Clone(out[i].Dims)
	}
	return out
}

// Indices returns the values of {i} that a stage runs with; one arbitrary value outside loops.
func Indices(s *ir.Stage, loop *ir.Loop) []int {
	if loop == nil {
		return []int{0}
	}
	out := loop.Iterations(s)
	for n, k := range out {
		out[n] = loop.Index(k)
	}
	return out
}

// Buffers finds the buffers of a program by name, including those that were added through it.
type Buffers struct {
	Program *ir.Program
	at      *ir.Directory
}

func NewBuffers(p *ir.Program) Buffers { return Buffers{p, ir.BufferDirectory(p)} }

// Find returns the buffer or family that a name stands for in the iteration of index i, or nil. It is valid until the
// next add.
func (b Buffers) Find(name string, i int) *ir.Buffer {
	if m, ok := b.at.Find(name, i); ok {
		return &b.Program.Buffers[m.Declared]
	}
	return nil
}

// HaveWords reports whether a name is that of a buffer of words in an iteration of a loop, or outside loops.
func (b Buffers) HaveWords(name string, loop *ir.Loop) bool {
	if loop == nil || !ir.IsFamily(name) {
		buf := b.Find(name, 0)
		return buf != nil && buf.Layout.Words()
	}
	for k := range loop.Count {
		if buf := b.Find(name, loop.Index(k)); buf != nil && buf.Layout.Words() {
			return true
		}
	}
	return false
}

// Declare adds a buffer unless it is declared already, for another kind of layers.
func (b Buffers) Declare(buf ir.Buffer) {
	if b.Find(buf.Name, buf.First) == nil {
		b.Add(buf)
	}
}

// DeclareIn declares a buffer, or the members of a family with some indices. If the family is declared already and
// these members differ, it becomes several families of one name, one for each run of equal members. Values are declared
// for all layers, and weights and caches for those that have them.
func (b *Buffers) DeclareIn(buf ir.Buffer, indices []int) {
	known := slices.ContainsFunc(b.Program.Buffers, func(have ir.Buffer) bool { return have.Name == buf.Name })
	ofSome := buf.Kind == ir.Weight || buf.Kind.OfSequences()
	if buf.Count == 0 || !known && (!ofSome || len(indices) == buf.Count) {
		b.Declare(buf)
		return
	}
	if !slices.ContainsFunc(indices, func(i int) bool {
		have := b.Find(buf.Name, i)
		return have == nil || !SameForm(have, &buf)
	}) {
		return
	}
	var runs []ir.Buffer
	for i := buf.First; i < buf.First+buf.Count; i++ {
		own := buf
		if !slices.Contains(indices, i) {
			have := b.Find(buf.Name, i)
			if have == nil {
				continue
			}
			own = *have
		}
		if last := len(runs) - 1; last >= 0 && runs[last].First+runs[last].Count == i &&
			SameForm(&runs[last], &own) {
			runs[last].Count++
			continue
		}
		own.First, own.Count = i, 1
		runs = append(runs, own)
	}
	b.Program.Buffers = append(
		slices.DeleteFunc(b.Program.Buffers, func(have ir.Buffer) bool { return have.Name == buf.Name }),
		runs...)
	*b = NewBuffers(b.Program)
}

// SameForm reports whether buffers are the same except for their members.
func SameForm(a, b *ir.Buffer) bool {
	return a.Kind == b.Kind && a.DType == b.DType && a.Layout == b.Layout && slices.Equal(a.Shape, b.Shape) &&
		(a.Kind != ir.Weight || fmt.Sprint(a.Pieces) == fmt.Sprint(b.Pieces))
}

// Family is a buffer of a name with the members of all families of that name, whose index steps by one.
func (b Buffers) Family(name string, i int) ir.Buffer {
	all := *b.Find(name, i)
	for _, run := range b.Program.Buffers {
		if run.Name == name && run.Count > 0 {
			last := max(all.First+all.Count, run.First+run.Count)
			all.First = min(all.First, run.First)
			all.Count = last - all.First
		}
	}
	return all
}

func (b Buffers) Add(buf ir.Buffer) *ir.Buffer {
	b.Program.Buffers = append(b.Program.Buffers, buf)
	b.at.Add(&buf)
	return &b.Program.Buffers[len(b.Program.Buffers)-1]
}

// Prune drops the buffers and counters that no stage uses, and sorts the others for printing: buffers by kind and first
// use, counters by first signal.
func Prune(p *ir.Program) {
	buffers := NewBuffers(p)
	used := map[string]int{}
	for i := range p.Variants {
		v := &p.Variants[i]
		first := map[string]int{}
		counters := ir.CounterDirectory(v)
		EachStage(v, func(s *ir.Stage, loop *ir.Loop) {
			for _, op := range s.Ops {
				for _, o := range slices.Concat(op.Out, op.In) {
					b := buffers.Find(o.Buf, ir.FirstIndex(s, loop))
					if b == nil {
						continue
					}
					if _, seen := used[b.Name]; !seen {
						used[b.Name] = len(used)
					}
				}
			}
			if m, ok := counters.Find(s.Signal, ir.FirstIndex(s, loop)); ok {
				declared := v.Counters[m.Declared].Name
				if _, seen := first[declared]; !seen {
					first[declared] = len(first)
				}
			}
		})
		v.Counters = slices.DeleteFunc(v.Counters, func(c ir.Counter) bool { _, ok := first[c.Name]; return !ok })
		slices.SortStableFunc(v.Counters, func(a, b ir.Counter) int {
			return cmp.Compare(first[a.Name], first[b.Name])
		})
	}
	p.Buffers = slices.DeleteFunc(p.Buffers, func(b ir.Buffer) bool { _, ok := used[b.Name]; return !ok })
	slices.SortStableFunc(p.Buffers, func(a, b ir.Buffer) int {
		return cmp.Or(cmp.Compare(kindOrder[a.Kind], kindOrder[b.Kind]), cmp.Compare(used[a.Name], used[b.Name]),
			cmp.Compare(a.First, b.First))
	})
}

var kindOrder = map[ir.BufferKind]int{ir.Input: 0, ir.Output: 1, ir.Const: 2, ir.Weight: 3, ir.KVCache: 4,
	ir.Recurrent: 5, ir.Activation: 6}
