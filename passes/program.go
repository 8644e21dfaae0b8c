package passes

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/rewrite"
)

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

// setThresholds makes every wait of a variant one for all producers of its counter, on all ranks where it is one for
// all. Those of a counter of a family are as many in every iteration.
func setThresholds(p *ir.Program, v *ir.Variant) error {
	producers, counters := map[string]int{}, ir.CounterDirectory(v)
	rewrite.EachStage(v, func(s *ir.Stage, loop *ir.Loop) {
		tasks := len(s.Dist.Tasks(0)) // NumTasks counts empty spans too
		m, ok := counters.Find(s.Signal, ir.FirstIndex(s, loop))
		if ok && v.Counters[m.Declared].Scope == ir.ScopeSystem {
			tasks *= p.NumRanks()
		}
		for _, i := range rewrite.Indices(s, loop) {
			if name, err := ir.Resolve(s.Signal, i); err == nil {
				producers[name] += tasks
			}
		}
	})
	var failed error
	rewrite.EachStage(v, func(s *ir.Stage, loop *ir.Loop) {
		for k := range s.Waits {
			w := &s.Waits[k]
			for n, i := range rewrite.Indices(s, loop) {
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

// declareCounters adds the counters that stages of a variant signal, unless they are there already: a family of them
// for the members of a family of buffers that a counter is called after, whose values it announces, or for the
// iterations of the stage's loop where it is called after none.
func declareCounters(v *ir.Variant, buffers rewrite.Buffers) {
	known := ir.CounterDirectory(v)
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		i := ir.FirstIndex(st, loop)
		if _, there := known.Find(st.Signal, i); there || st.Signal == "" {
			return
		}
		c := ir.Counter{Name: st.Signal, Scope: scopeOf(st, i, buffers)}
		if b := buffers.Find(st.Signal, i); b != nil && b.Count > 0 {
			all := buffers.Family(b.Name, i)
			b = &all
			c.Name, c.First, c.Count, c.Step = b.Name, b.First, b.Count, b.Step
		} else if b == nil && loop != nil && ir.IsFamily(st.Signal) {
			c.First, c.Count, c.Step = loop.First, loop.Count, loop.Step
		}
		v.Counters = append(v.Counters, c)
		known.AddCounter(&c)
	})
}

// scopeOf is the scope of a counter that a stage signals: that of all ranks if it pushes to them.
func scopeOf(st *ir.Stage, i int, buffers rewrite.Buffers) ir.Scope {
	for _, o := range lastOp(st).Out {
		if b := buffers.Find(o.Buf, i); b != nil && b.Space == ir.PeerScratch {
			return ir.ScopeSystem
		}
	}
	return ir.ScopeGPU
}

// Views are built from these.
var (
	spanA = ir.Symbol(ir.SpanA)
	spanB = ir.Symbol(ir.SpanB)
	pos   = ir.Symbol(ir.Pos)
	onSM  = ir.Symbol(ir.OnSM)
	rank  = ir.Symbol(ir.OnRank)
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
