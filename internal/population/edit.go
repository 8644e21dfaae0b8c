package population

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
)

// An edit is a program that an operator is changing: one variant of it, drawn at random, and what variants share. The
// program is a copy, so that operators change it in place.
type edit struct {
	*rand.Rand
	prog    *ir.Program
	variant *ir.Variant
	stages  []*ir.Stage // of the variant, in program order
	loops   map[*ir.Stage]*ir.Loop
	named   map[string]*ir.Buffer // what bufferNamed has found
	none    bool                  // there is no place that the operator could change
}

// tries is how often an operator looks for something to change.
const tries = 12

// applied returns a changed copy of a program; nil if the operator finds nothing to change.
func (op *Operator) applied(r *rand.Rand, p *ir.Program) *ir.Program {
	q := cloned(p)
	for range tries {
		e := newEdit(r, q, &q.Variants[r.IntN(len(q.Variants))])
		op.change(e)
		if !e.none && !reflect.DeepEqual(p, q) {
			return q
		}
	}
	return nil
}

func newEdit(r *rand.Rand, p *ir.Program, v *ir.Variant) *edit {
	e := &edit{Rand: r, prog: p, variant: v, loops: map[*ir.Stage]*ir.Loop{}, named: map[string]*ir.Buffer{}}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			e.stages = append(e.stages, n)
		case *ir.Loop:
			for _, s := range n.Body {
				e.stages, e.loops[s] = append(e.stages, s), n
			}
		}
	}
	return e
}

// cloned copies everything that operators change.
func cloned(p *ir.Program) *ir.Program {
	q := *p
	q.Buffers, q.Groups = slices.Clone(p.Buffers), slices.Clone(p.Groups)
	q.Pages, q.Variants = slices.Clone(p.Pages), slices.Clone(p.Variants)
	for i := range q.Buffers {
		b := &q.Buffers[i]
		b.Shape, b.Pages = slices.Clone(b.Shape), slices.Clone(b.Pages)
	}
	for i := range q.Groups {
		q.Groups[i].Members = slices.Clone(q.Groups[i].Members)
	}
	for i := range q.Variants {
		v := &q.Variants[i]
		v.Counters, v.Body = slices.Clone(v.Counters), slices.Clone(v.Body)
		for k, n := range v.Body {
			switch n := n.(type) {
			case *ir.Stage:
				v.Body[k] = clonedStage(n)
			case *ir.Loop:
				l := *n
				l.Body = slices.Clone(l.Body)
				for j := range l.Body {
					l.Body[j] = clonedStage(l.Body[j])
				}
				v.Body[k] = &l
			}
		}
	}
	return &q
}

func clonedStage(s *ir.Stage) *ir.Stage {
	out := *s
	out.Waits, out.Ops, out.Dist.Spans = slices.Clone(s.Waits), slices.Clone(s.Ops), slices.Clone(s.Dist.Spans)
	for k := range out.Ops {
		o := &out.Ops[k]
		o.In, o.Out, o.Params = slices.Clone(o.In), slices.Clone(o.Out), slices.Clone(o.Params)
		for _, list := range [][]ir.Operand{o.In, o.Out} {
			for i := range list {
				list[i].Dims = slices.Clone(list[i].Dims)
			}
		}
	}
	return &out
}

// listed returns a well-formed program with a stage for each of its tasks, so that an operator can change one task
// alone.
func listed(p *ir.Program) *ir.Program {
	out := *p
	out.Groups, out.Variants = nil, nil
	for i := range p.Variants {
		f, diags := ir.Unroll(p, &p.Variants[i])
		if f == nil {
			panic(fmt.Sprintf("population: %s does not unroll: %v", p.Variants[i].Name, diags)) // it is well formed
		}
		v := ir.Variant{Name: f.Name, Lo: f.Lo, Hi: f.Hi, Counters: f.Counters}
		for _, t := range f.Tasks {
			s := &ir.Stage{Name: t.Name, Dist: ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: t.SM, B: 1}}}}
			for _, w := range t.Waits {
				s.Waits = append(s.Waits, ir.Wait{Counter: f.Counters[w.Counter].Name, Threshold: w.Threshold})
			}
			if t.Signal >= 0 {
				s.Signal = f.Counters[t.Signal].Name
			}
			for _, op := range t.Ops {
				s.Ops = append(s.Ops, memberNames(f, op))
			}
			v.Body = append(v.Body, s)
		}
		out.Buffers, out.Variants = f.Buffers, append(out.Variants, v)
	}
	return &out
}

// memberNames returns an op whose operands name the buffers of an unrolled program.
func memberNames(f *ir.Flat, op ir.FlatOp) ir.Op {
	named := func(list []ir.Operand, bufs []int) []ir.Operand {
		list = slices.Clone(list)
		for i, b := range bufs {
			if b >= 0 {
				list[i].Buf = f.Buffers[b].Name
			}
		}
		return list
	}
	op.In, op.Out = named(op.In, op.InBuf), named(op.Out, op.OutBuf)
	return op.Op
}

// one returns a random element of a list for which ok holds; nil if there is none.
func one[T any](r *rand.Rand, list []T, ok func(*T) bool) *T {
	for _, i := range r.Perm(len(list)) {
		if ok == nil || ok(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func (e *edit) buffer(ok func(*ir.Buffer) bool) *ir.Buffer { return one(e.Rand, e.prog.Buffers, ok) }
func (e *edit) counter(ok func(*ir.Counter) bool) *ir.Counter {
	return one(e.Rand, e.variant.Counters, ok)
}
func (e *edit) page(ok func(*ir.Page) bool) *ir.Page { return one(e.Rand, e.prog.Pages, ok) }

func (e *edit) stage(ok func(*ir.Stage) bool) *ir.Stage {
	s := one(e.Rand, e.stages, func(s **ir.Stage) bool { return ok == nil || ok(*s) })
	if s == nil {
		return nil
	}
	return *s
}

// body calls change with the list of stages that a stage stands in, which is that of its loop or of the variant.
func (e *edit) body(s *ir.Stage, change func(list []ir.Node, at int) []ir.Node) {
	l := e.loops[s]
	if l == nil {
		e.variant.Body = change(e.variant.Body, slices.Index(e.variant.Body, ir.Node(s)))
		return
	}
	var nodes []ir.Node
	for _, s := range l.Body {
		nodes = append(nodes, s)
	}
	nodes = change(nodes, slices.Index(l.Body, s))
	l.Body = nil
	for _, n := range nodes {
		l.Body = append(l.Body, n.(*ir.Stage))
	}
}

// A use is an operand with the stage and the op that it is of, and its buffer.
type use struct {
	*ir.Operand
	stage *ir.Stage
	op    *ir.Op
	write bool
	arg   int
	buf   *ir.Buffer // the family, or that of a group's first member; nil for a temporary
}

// uses lists the operands of a stage.
func (e *edit) uses(s *ir.Stage) (out []use) {
	for k := range s.Ops {
		op := &s.Ops[k]
		for i := range op.In {
			out = append(out, use{&op.In[i], s, op, false, i, e.bufferNamed(op.In[i].Buf)})
		}
		for i := range op.Out {
			out = append(out, use{&op.Out[i], s, op, true, i, e.bufferNamed(op.Out[i].Buf)})
		}
	}
	return out
}

// view returns a random view of a buffer for which ok holds; its stage is random too.
func (e *edit) view(ok func(*use) bool) *use {
	for _, i := range e.Perm(len(e.stages)) {
		if x := one(e.Rand, e.uses(e.stages[i]), func(x *use) bool { return x.buf != nil && ok(x) }); x != nil {
			return x
		}
	}
	return nil
}

// aligned is a view that has as many ranges as its buffer has dimensions.
func (x *use) aligned() bool { return len(x.Dims) > 0 && len(x.Dims) == len(x.buf.Shape) }

func (e *edit) op(ok func(*ir.Op) bool) *ir.Op {
	for _, i := range e.Perm(len(e.stages)) {
		if o := one(e.Rand, e.stages[i].Ops, ok); o != nil {
			return o
		}
	}
	return nil
}

func (e *edit) bufferNamed(name string) *ir.Buffer {
	b, ok := e.named[name]
	if !ok {
		b = e.findBuffer(name)
		e.named[name] = b
	}
	return b
}

func (e *edit) findBuffer(name string) *ir.Buffer {
	for i := range e.prog.Groups {
		if g := &e.prog.Groups[i]; sameFamily(g.Name, name) {
			name = g.Members[0]
			break
		}
	}
	for i := range e.prog.Buffers {
		if sameFamily(e.prog.Buffers[i].Name, name) {
			return &e.prog.Buffers[i]
		}
	}
	return nil
}

func (e *edit) counterNamed(name string) *ir.Counter {
	for i := range e.variant.Counters {
		if sameFamily(e.variant.Counters[i].Name, name) {
			return &e.variant.Counters[i]
		}
	}
	return nil
}

// sameFamily reports whether a name, with whatever index, is that of a member of a family, or the name itself.
func sameFamily(family, name string) bool {
	head, rest, ok := strings.Cut(family, "{")
	_, tail, _ := strings.Cut(rest, "}")
	if !ok {
		return family == name
	}
	if !strings.HasPrefix(name, head) || !strings.HasSuffix(name, tail) || len(name) <= len(head)+len(tail) {
		return false
	}
	index := name[len(head) : len(name)-len(tail)]
	return index[0] == '{' || strings.Trim(index, "0123456789") == ""
}

// nameIn is how a stage names a member of a family: by {i} in a loop, and else the first.
func (e *edit) nameIn(s *ir.Stage, name string, first int) string {
	if e.loops[s] == nil && ir.IsFamily(name) {
		return resolve(name, first)
	}
	return name
}

// producers counts the tasks that signal a counter, which is named as in a wait. Of a family it is those of one stage
// that signals it, by the same name if there is one: the stage before a loop has as many tasks as the one in it.
func (e *edit) producers(counter string) (n int) {
	c := e.counterNamed(counter)
	for _, s := range e.stages {
		if s.Signal == counter && (n == 0 || !ir.IsFamily(counter)) {
			n += len(s.Dist.Tasks(0))
		}
	}
	for _, s := range e.stages {
		if n == 0 && c != nil && sameFamily(c.Name, s.Signal) {
			n = len(s.Dist.Tasks(0))
		}
	}
	return n
}

// fresh reports whether a stage neither waits for a counter nor signals it, and some stage does.
func (e *edit) fresh(s *ir.Stage) func(*ir.Counter) bool {
	return func(c *ir.Counter) bool {
		return !sameFamily(c.Name, s.Signal) && e.producers(c.Name) > 0 &&
			!slices.ContainsFunc(s.Waits, func(w ir.Wait) bool { return sameFamily(c.Name, w.Counter) })
	}
}

// join is a stage's wait for all producers of a counter.
func (e *edit) join(s *ir.Stage, c *ir.Counter) ir.Wait {
	return ir.Wait{Counter: e.nameIn(s, c.Name, c.First), Threshold: max(1, e.producers(c.Name))}
}

// resolve returns a name with its index. The names here are well formed.
func resolve(name string, i int) string {
	full, err := ir.Resolve(name, i)
	if err != nil {
		panic(err)
	}
	return full
}

// shifted names the member whose index is larger by a number.
func shifted(name string, by int) string {
	head, rest, ok := strings.Cut(name, "{")
	index, tail, _ := strings.Cut(rest, "}")
	if !ok {
		return name
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(index, "i")) // 0 for {i}
	if n += by; n == 0 {
		return head + "{i}" + tail
	}
	return head + fmt.Sprintf("{i%+d}", n) + tail
}

// shift moves a range, of whatever length.
func shift(r *ir.Range, by int) { r.Lo, r.Hi = r.Lo.Add(ir.Int(by)), r.Hi.Add(ir.Int(by)) }

// pick returns a random element of a list that is not empty.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// chance is true in one of n cases.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }
