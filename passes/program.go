package passes

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// eachStage calls f for every stage of a variant, in order; loop is nil outside loops.
func eachStage(v *ir.Variant, f func(s *ir.Stage, loop *ir.Loop)) {
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

// flatStages returns the stages of a variant that has no loops.
func flatStages(pass string, v *ir.Variant) ([]*ir.Stage, error) {
	stages := make([]*ir.Stage, 0, len(v.Body))
	for _, n := range v.Body {
		s, ok := n.(*ir.Stage)
		if !ok {
			return nil, diag.Errorf(codeOrder, "pass "+pass,
				"variant %s has a loop already; want the stages of every layer one by one", v.Name)
		}
		stages = append(stages, s)
	}
	return stages, nil
}

func setStages(v *ir.Variant, stages []*ir.Stage) {
	v.Body = v.Body[:0:0]
	for _, s := range stages {
		v.Body = append(v.Body, s)
	}
}

// eachBody calls f for every run of stages that no loop interrupts, and for the body of every loop; f returns what
// takes their place.
func eachBody(v *ir.Variant, f func(stages []*ir.Stage, loop *ir.Loop) ([]*ir.Stage, error)) error {
	var out []ir.Node
	var run []*ir.Stage
	flush := func() error {
		stages, err := f(run, nil)
		for _, s := range stages {
			out = append(out, s)
		}
		run = nil
		return err
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			run = append(run, n)
		case *ir.Loop:
			if err := flush(); err != nil {
				return err
			}
			body, err := f(n.Body, n)
			if err != nil {
				return err
			}
			n.Body = body
			out = append(out, n)
		}
	}
	if err := flush(); err != nil {
		return err
	}
	v.Body = out
	return nil
}

// setThresholds makes every wait of a variant one for all producers of its counter. Those of a counter of a family are
// as many in every iteration.
func setThresholds(v *ir.Variant) error {
	producers := map[string]int{}
	eachStage(v, func(s *ir.Stage, loop *ir.Loop) {
		tasks := len(s.Dist.Tasks(0)) // NumTasks counts empty spans too
		for _, i := range indices(s, loop) {
			if name, err := ir.Resolve(s.Signal, i); err == nil {
				producers[name] += tasks
			}
		}
	})
	var failed error
	eachStage(v, func(s *ir.Stage, loop *ir.Loop) {
		for k := range s.Waits {
			w := &s.Waits[k]
			for n, i := range indices(s, loop) {
				name, _ := ir.Resolve(w.Counter, i)
				if n > 0 && producers[name] != w.Threshold && failed == nil {
					failed = diag.Errorf(codeOrder, "stage "+s.Name, "waits for %d tasks that signal %s, and for %d "+
						"in iteration %d; want as many in each", w.Threshold, w.Counter, producers[name], i)
				}
				w.Threshold = producers[name]
			}
		}
	})
	return failed
}

// indices returns the values of {i} that a stage runs with; one, whichever, if it stands in no loop.
func indices(s *ir.Stage, loop *ir.Loop) []int {
	if loop == nil {
		return []int{0}
	}
	out := loop.Iterations(s)
	for n, k := range out {
		out[n] = loop.Index(k)
	}
	return out
}

// firstIndex is the value of {i} in the first iteration that a stage runs in; one, whichever, outside of loops, where l
// is nil. Iterations of other kinds may have buffers of another format by the same names.
func firstIndex(s *ir.Stage, l *ir.Loop) int {
	if l == nil {
		return 0
	}
	for k := range l.Count {
		if l.Runs(s, k) {
			return l.Index(k)
		}
	}
	return l.First
}

// prune drops the buffers and counters that no stage names, and puts the rest into the order in which they are printed:
// buffers by kind and first use, counters by first signal.
func prune(p *ir.Program) {
	buffers := newBuffers(p)
	used := map[string]int{}
	for i := range p.Variants {
		v := &p.Variants[i]
		first := map[string]int{}
		counters := ir.CounterDirectory(v)
		eachStage(v, func(s *ir.Stage, loop *ir.Loop) {
			for _, op := range s.Ops {
				for _, o := range slices.Concat(op.Out, op.In) {
					b := buffers.find(o.Buf, firstIndex(s, loop))
					if b == nil {
						continue
					}
					if _, seen := used[b.Name]; !seen {
						used[b.Name] = len(used)
					}
				}
			}
			if m, ok := counters.Find(s.Signal, firstIndex(s, loop)); ok {
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
	ir.Activation: 5}

// buffers finds the buffers of a program by name, those that are added through it included.
type buffers struct {
	p  *ir.Program
	at *ir.Directory
}

func newBuffers(p *ir.Program) buffers { return buffers{p, ir.BufferDirectory(p)} }

// find returns the buffer or family that a name stands for in the iteration of index i, or nil. It is valid until the
// next add.
func (b buffers) find(name string, i int) *ir.Buffer {
	if m, ok := b.at.Find(name, i); ok {
		return &b.p.Buffers[m.Declared]
	}
	return nil
}

// haveWords reports whether a name stands for a buffer of words in an iteration of a loop, or outside of loops.
func (b buffers) haveWords(name string, loop *ir.Loop) bool {
	if loop == nil || !ir.IsFamily(name) {
		buf := b.find(name, 0)
		return buf != nil && buf.Layout.Words()
	}
	for k := range loop.Count {
		if buf := b.find(name, loop.Index(k)); buf != nil && buf.Layout.Words() {
			return true
		}
	}
	return false
}

// declare adds a buffer unless it is there already, as what another kind of layers has too.
func (b buffers) declare(buf ir.Buffer) {
	if b.find(buf.Name, buf.First) == nil {
		b.add(buf)
	}
}

func (b buffers) add(buf ir.Buffer) *ir.Buffer {
	b.p.Buffers = append(b.p.Buffers, buf)
	b.at.Add(&buf)
	return &b.p.Buffers[len(b.p.Buffers)-1]
}

// declareCounters adds the counters that stages of a variant signal, unless they are there already: a family of them
// for the members of a family of buffers that a counter is called after, whose values it announces, or for the
// iterations of the stage's loop where it is called after none.
func declareCounters(v *ir.Variant, buffers buffers) {
	known := ir.CounterDirectory(v)
	eachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		i := firstIndex(st, loop)
		if _, there := known.Find(st.Signal, i); there || st.Signal == "" {
			return
		}
		c := ir.Counter{Name: st.Signal}
		if b := buffers.find(st.Signal, i); b != nil && b.Count > 0 {
			c = ir.Counter{Name: b.Name, First: b.First, Count: b.Count, Step: b.Step}
		} else if b == nil && loop != nil && ir.IsFamily(st.Signal) {
			c.First, c.Count, c.Step = loop.First, loop.Count, loop.Step
		}
		v.Counters = append(v.Counters, c)
		known.AddCounter(&c)
	})
}

// cloneStage copies a stage so that neither sees changes of the other. Expressions are immutable and shared.
func cloneStage(s *ir.Stage) *ir.Stage {
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

// Views are built from these.
var (
	spanA = ir.Symbol(ir.SpanA)
	spanB = ir.Symbol(ir.SpanB)
	pos   = ir.Symbol(ir.Pos)
	onSM  = ir.Symbol(ir.OnSM)
	task  = ir.Span(spanA, spanB) // what the task covers
)

func temp(name string) ir.Operand { return ir.Operand{Buf: name} }

func view(buf string, dims ...ir.Range) ir.Operand { return ir.Operand{Buf: buf, Dims: dims} }

// upTo is the range of the first n elements.
func upTo(n int) ir.Range { return ir.Span(ir.Int(0), ir.Int(n)) }

// at is the range of the n elements from n*e + offset.
func at(e ir.Expr, n, offset int) ir.Range {
	lo, hi := e.Mul(n), e.Add(ir.Int(1)).Mul(n)
	if offset != 0 {
		lo, hi = ir.Int(offset).Add(lo), ir.Int(offset).Add(hi)
	}
	return ir.Span(lo, hi)
}
