package population

import (
	"math/rand/v2"
	"slices"

	"amkc/ir"
)

// An Operator makes one change to a program, of a kind that a schedule can get wrong. Not every result is unsafe: a
// wait may be redundant, a task may run on another SM as well. The judges decide.
type Operator struct {
	Name   string
	Rule   string // the rule that it is meant to break
	change func(*edit)
}

// Apply changes a case, which has a native program, and leaves what it was made of as it was. It reports false, and the
// case as it was, if it finds nothing to change.
func (op *Operator) Apply(r *rand.Rand, c *Case) bool {
	if c.Program == nil {
		return false
	}
	p := op.applied(r, c.Program)
	if p != nil {
		c.Program = p
	}
	return p != nil
}

// What a validator must prove, and operators break.
const (
	ruleDeadlock   = "deadlock freedom"
	ruleRace       = "race freedom"
	ruleProvenance = "provenance"
	ruleMemory     = "memory"
	ruleStructure  = "structure"
	ruleEdges      = "only the edges of the memory model"
	ruleStep       = "what one step leaves to the next"
	ruleOperands   = "what an opcode takes"
)

// Operators are all of them, in a fixed order: a seed means the same operator as long as the list stays.
var Operators = slices.Concat(scheduleOperators, operandOperators, positionOperators, nameOperators, loopOperators,
	tokenOperators)

// When and where tasks run, what they touch, and in which memory it is stored.
var scheduleOperators = []Operator{
	// Waits, signals and counters.
	{"drop-wait", ruleRace, onWait(func(_ *edit, s *ir.Stage, k int) { s.Waits = slices.Delete(s.Waits, k, k+1) })},
	{"threshold-minus-one", ruleRace, onWait(func(_ *edit, s *ir.Stage, k int) { s.Waits[k].Threshold-- })},
	{"threshold-plus-one", ruleDeadlock, onWait(func(_ *edit, s *ir.Stage, k int) { s.Waits[k].Threshold++ })},
	{"wait-on-another-counter", ruleRace, onWait(func(e *edit, s *ir.Stage, k int) {
		if c := e.counter(e.fresh(s)); c != nil {
			s.Waits[k] = e.join(s, c)
		}
	})},
	{"wait-on-own-counter", ruleDeadlock, onStage(nil, func(e *edit, s *ir.Stage) {
		if n := e.producers(s.Signal); n > 0 { // of a family, the very member
			s.Waits = append(s.Waits, ir.Wait{Counter: s.Signal, Threshold: n})
		}
	})},
	{"wait-on-later-task", ruleDeadlock, onStage(nil, func(e *edit, s *ir.Stage) {
		later := e.stages[slices.Index(e.stages, s)+1:]
		if l := one(e.Rand, later, func(l **ir.Stage) bool { return (*l).Signal != s.Signal }); l != nil {
			if c := e.counterNamed((*l).Signal); c != nil && e.fresh(s)(c) {
				s.Waits = append(s.Waits, e.join(s, c))
			}
		}
	})},
	{"signal-another-counter", ruleDeadlock, onStage(nil, func(e *edit, s *ir.Stage) {
		if c := e.counter(func(c *ir.Counter) bool { return !sameFamily(c.Name, s.Signal) }); c != nil {
			s.Signal = e.nameIn(s, c.Name, c.First)
		}
	})},
	{"one-counter-for-two", ruleRace, (*edit).oneCounterForTwo},
	{"step-without-signal", ruleStep, onStage(func(_ *edit, s *ir.Stage) bool { return s.Signal == "step" },
		func(e *edit, s *ir.Stage) {
			s.Signal = ""
			if c := e.counter(e.fresh(s)); c != nil && chance(e.Rand, 2) {
				s.Signal = e.nameIn(s, c.Name, c.First)
			}
		})},
	{"initial-value", ruleRace, onWait(func(e *edit, s *ir.Stage, k int) {
		if c := e.counterNamed(s.Waits[k].Counter); c != nil {
			c.Init++
		}
	})},
	{"flag-a-counter", ruleEdges, onWait(realise(ir.ByCounter, ir.Flagged))},
	{"count-a-flag", ruleEdges, onWait(realise(ir.Flagged, ir.ByCounter))}, // and breaks nothing
	{"undecided", ruleStructure, onCounter(func(_ *edit, c *ir.Counter) { c.How = ir.Undecided })},
	{"scope-sm", ruleEdges, onCounter(func(_ *edit, c *ir.Counter) { c.Scope = ir.ScopeSM })},
	{"step-flagged", ruleStep, func(e *edit) {
		if c := e.counterNamed("step"); c != nil {
			c.How = ir.Flagged
		}
	}},

	// Where tasks run, and in which order.
	{"swap-in-queue", ruleDeadlock, onStage(nil, func(e *edit, s *ir.Stage) {
		e.body(s, func(list []ir.Node, at int) []ir.Node {
			next := slices.IndexFunc(list[at+1:], func(n ir.Node) bool {
				t, ok := n.(*ir.Stage)
				return ok && meet(s, t)
			})
			if next >= 0 {
				list[at], list[at+1+next] = list[at+1+next], list[at]
			}
			return list
		})
	})},
	{"exchange-sms", ruleRace, func(e *edit) {
		if a := e.span(); a != nil {
			if b := e.span(); b != nil {
				a.SM, b.SM = b.SM, a.SM
			}
		}
	}},
	{"move-task", ruleRace, onStage(nil, (*edit).move)},
	{"move-on-chip-owner", ruleMemory, onStage(func(e *edit, s *ir.Stage) bool {
		return slices.ContainsFunc(e.uses(s), func(x use) bool {
			return x.write && x.buf != nil && x.buf.Space == ir.SMEM
		})
	}, (*edit).move)},
	{"rotate-by-iteration", ruleMemory, onStage(func(e *edit, s *ir.Stage) bool {
		return e.loops[s] != nil && placed(s)
	}, func(_ *edit, s *ir.Stage) { s.Dist.Step = (s.Dist.Step + 1) % s.Dist.SMs })},
	{"fewer-sms", ruleDeadlock, onStage(func(_ *edit, s *ir.Stage) bool { return placed(s) },
		func(_ *edit, s *ir.Stage) {
			s.Dist.SMs--
			s.Dist.Rot, s.Dist.Step = s.Dist.Rot%s.Dist.SMs, s.Dist.Step%s.Dist.SMs
		})},
	{"empty-spans", ruleEdges, onStage(func(e *edit, s *ir.Stage) bool {
		d := s.Dist
		d.Empty = !d.Empty
		return d.Kind == ir.Spread && (len(d.Tasks(0)) != len(s.Dist.Tasks(0)) || chance(e.Rand, 8))
	}, func(_ *edit, s *ir.Stage) { s.Dist.Empty = !s.Dist.Empty })},
	{"task-without-sm", ruleMemory, onStage(nil, func(e *edit, s *ir.Stage) {
		if d := &s.Dist; d.Kind == ir.Explicit && len(d.Spans) > 0 {
			d.Spans[e.IntN(len(d.Spans))].SM = -1
		} else {
			*d = ir.Dist{Kind: ir.Tiled, Extent: d.Extent, Grain: d.Grain}
		}
	})},
	{"drop-task", ruleProvenance, onStage(nil, func(e *edit, s *ir.Stage) {
		e.body(s, func(list []ir.Node, at int) []ir.Node { return slices.Delete(list, at, at+1) })
	})},
	{"repeat-task", ruleRace, onStage(nil, func(e *edit, s *ir.Stage) {
		again := clonedStage(s)
		again.Name += ".again"
		e.body(s, func(list []ir.Node, at int) []ir.Node { return slices.Insert(list, at+1, ir.Node(again)) })
	})},
	{"unit-left-out", ruleProvenance, onStage(func(_ *edit, s *ir.Stage) bool {
		return s.Dist.Kind == ir.ByUnit && s.Dist.Extent > 1 && s.Signal != ""
	}, func(e *edit, s *ir.Stage) {
		s.Dist.Extent--
		e.waitsFor(s.Signal, func(w *ir.Wait) { w.Threshold-- }) // nobody waits for it
	})},

	// What a task touches: ranges of the views, and which buffer they are of.
	{"widen-view", ruleMemory, onRange(anyUse, func(_ *edit, r *ir.Range, _ int) { r.Hi = r.Hi.Add(ir.Int(1)) })},
	{"shift-read", ruleRace, onRange(readUse, func(e *edit, r *ir.Range, _ int) { shift(r, e.sign()) })},
	{"shift-write", ruleRace, onRange(writeUse, func(e *edit, r *ir.Range, _ int) { shift(r, e.sign()) })},
	{"shrink-read", ruleEdges, onSpan(readUse, 0, -1)},
	{"overlap-spans", ruleRace, onSpan(writeUse, 0, 1)},
	{"overlap-spans-below", ruleRace, onSpan(writeUse, -1, 0)},
	{"gap-between-spans", ruleProvenance, onSpan(writeUse, 0, -1)},
	{"shift-spans", ruleRace, onSpan(writeUse, 1, 1)},
	{"past-the-end", ruleMemory, onRange(anyUse, func(_ *edit, r *ir.Range, extent int) {
		if hi, ok := r.Hi.IsConst(); ok {
			shift(r, extent-hi+1)
		} else {
			shift(r, extent)
		}
	})},
	{"read-another-on-the-page", ruleProvenance, redirect(readUse, func(x *use, b *ir.Buffer) bool {
		shared := func(p string) bool { return slices.Contains(x.buf.Pages, p) }
		return slices.ContainsFunc(b.Pages, shared) && fits(x, b)
	})},
	{"read-another-buffer", ruleRace, redirect(readUse, fits)},
	{"write-another-buffer", ruleRace, redirect(writeUse, func(x *use, b *ir.Buffer) bool {
		return !b.Kind.ReadOnly() && fits(x, b)
	})},
	{"write-read-only", ruleProvenance, redirect(writeUse, func(x *use, b *ir.Buffer) bool {
		return b.Kind.ReadOnly() && len(b.Shape) == len(x.Dims)
	})},
	{"read-without-buffer", ruleStructure, onView(readUse, func(_ *edit, x *use) {
		*x.Operand = ir.Operand{Buf: "%nothing"}
	})},
	{"no-such-buffer", ruleStructure, onView(readUse, func(_ *edit, x *use) { x.Buf = "nowhere" })},
	{"alias-operands", ruleRace, onView(func(x *use) bool { return readUse(x) && len(x.op.Out) > 0 && len(x.Dims) > 0 },
		func(e *edit, x *use) {
			to := &x.op.Out[e.IntN(len(x.op.Out))]
			inPlace := e.bufferNamed(to.Buf) == x.buf
			*to = ir.Operand{Buf: x.Buf, Dims: slices.Clone(x.Dims)}
			if inPlace || chance(e.Rand, 2) {
				shift(&to.Dims[len(to.Dims)-1], 1)
			}
		})},

	// Pages and buffers.
	{"merge-pages", ruleRace, onPage(func(e *edit, from *ir.Page) {
		to := e.page(func(p *ir.Page) bool {
			return p.Name != from.Name && p.Layout == from.Layout && p.Space == from.Space
		})
		if to == nil {
			return
		}
		to.Bytes = max(to.Bytes, from.Bytes)
		for i := range e.prog.Buffers {
			for k, page := range e.prog.Buffers[i].Pages {
				if page == from.Name {
					e.prog.Buffers[i].Pages[k] = to.Name
				}
			}
		}
	})},
	{"move-to-another-page", ruleRace, onBuffer(func(b *ir.Buffer) bool { return b.Layout.Words() },
		func(e *edit, b *ir.Buffer) {
			p := e.page(func(p *ir.Page) bool { return b.Layout == p.Layout && b.Bytes() <= p.Bytes })
			if p != nil {
				b.Pages = []string{p.Name}
			}
		})},
	{"swap-pages-of-a-family", ruleRace, onBuffer(alternates, func(_ *edit, b *ir.Buffer) {
		b.Pages[0], b.Pages[1] = b.Pages[1], b.Pages[0]
	})},
	{"one-page-less", ruleRace, onBuffer(alternates, func(_ *edit, b *ir.Buffer) {
		b.Pages = b.Pages[:len(b.Pages)-1]
	})},
	{"single-for-double-buffer", ruleRace, onBuffer(alternates, func(e *edit, b *ir.Buffer) {
		b.Pages = []string{pick(e.Rand, b.Pages)}
	})},
	{"page-too-small", ruleMemory, onPage(func(e *edit, p *ir.Page) {
		for i := range e.prog.Buffers {
			if b := &e.prog.Buffers[i]; slices.Contains(b.Pages, p.Name) {
				p.Bytes = min(p.Bytes, b.Bytes()-1)
			}
		}
	})},
	{"page-layout", ruleMemory, onPage(func(e *edit, p *ir.Page) {
		more := ir.Layout{Kind: p.Layout.Kind, Copies: max(2, p.Layout.Copies+1)}
		p.Layout = pick(e.Rand, []ir.Layout{{}, {Kind: ir.Word64}, more})
	})},
	{"page-space", ruleMemory, onPage(func(_ *edit, p *ir.Page) { p.Space = ir.SMEM })},
	{"page-missing", ruleStructure, onBuffer(paged, func(_ *edit, b *ir.Buffer) { b.Pages = []string{"nowhere"} })},
	{"buffer-dtype", ruleMemory, onBuffer(nil, func(e *edit, b *ir.Buffer) {
		b.DType = pick(e.Rand, []ir.DType{ir.F32, ir.F16, ir.BF16, ir.F8E4M3, ir.I32, ir.I32, ir.I8, ir.U8, ir.BOOL})
		if b.Kind.ReadOnly() && chance(e.Rand, 8) { // two tasks could not write elements that share bytes
			b.DType = ir.I4
		}
	})},
	{"buffer-layout", ruleMemory, onBuffer(nil, func(e *edit, b *ir.Buffer) {
		b.Layout.Kind = ir.LayoutKind(e.IntN(6))
	})},
	{"words-to-plain", ruleEdges, onBuffer(func(b *ir.Buffer) bool { return b.Layout.Words() },
		func(_ *edit, b *ir.Buffer) { b.Layout, b.Pages = ir.Layout{}, nil })},
	{"buffer-space", ruleMemory, onBuffer(nil, func(e *edit, b *ir.Buffer) { b.Space = ir.Space(e.IntN(4)) })},
	{"buffer-kind", ruleProvenance, onBuffer(nil, func(e *edit, b *ir.Buffer) { b.Kind = ir.BufferKind(e.IntN(6)) })},
	{"buffer-shape", ruleMemory, onBuffer(nil, func(e *edit, b *ir.Buffer) { b.Shape[e.IntN(len(b.Shape))]-- })},

	// The ops of a task, and their parameters.
	{"drop-op", ruleProvenance, onOps(1, func(_ *edit, s *ir.Stage, k int) { s.Ops = slices.Delete(s.Ops, k, k+1) })},
	{"repeat-op", ruleEdges, onOps(1, func(_ *edit, s *ir.Stage, k int) { s.Ops = append(s.Ops, s.Ops[k]) })},
	{"swap-ops", ruleEdges, onOps(2, func(_ *edit, s *ir.Stage, k int) { s.Ops[0], s.Ops[k] = s.Ops[k], s.Ops[0] })},
	{"opcode", ruleStructure, onOp(nil, func(e *edit, o *ir.Op) { o.Code = ir.Opcode(e.IntN(len(ir.Ops))) })},
	{"fused", ruleStructure, onOp(takesOperands, func(e *edit, o *ir.Op) {
		o.Code, o.Params = ir.FUSED, []ir.Param{intParam("recipe", e.IntN(8))}
	})},
	{"drop-parameter", ruleStructure, onParam(nil, func(_ *edit, o *ir.Op, k int) {
		o.Params = slices.Delete(o.Params, k, k+1)
	})},
	{"change-parameter", ruleMemory, onParam(nil, func(e *edit, o *ir.Op, k int) {
		if p := &o.Params[k]; p.IsFloat {
			p.Float = -p.Float
		} else {
			p.Int = p.Int.Add(ir.Int(e.sign()))
		}
	})},
	{"parameter-type", ruleStructure, onParam(nil, func(_ *edit, o *ir.Op, k int) {
		o.Params[k] = ir.Param{Key: o.Params[k].Key, Int: ir.Int(1), Float: 1.5, IsFloat: !o.Params[k].IsFloat}
	})},
	{"unknown-parameter", ruleStructure, onOp(nil, func(_ *edit, o *ir.Op) {
		o.Params = append(o.Params, intParam("colour", 1))
	})},
	{"read-before-write", ruleProvenance, onOp(makesTemporary, func(_ *edit, o *ir.Op) {
		o.Out[slices.IndexFunc(o.Out, ir.Operand.IsTemp)].Buf = "%elsewhere"
	})},
}

// What an opcode takes: lengths, ranks and types of its operands, their number, and the values of its parameters.
var operandOperators = []Operator{
	{"resize-operand", ruleOperands, onRange(anyUse, func(e *edit, r *ir.Range, extent int) {
		lo, _ := r.Lo.IsConst()
		lo = max(0, min(lo, extent))
		n := pick(e.Rand, []int{0, 1, 2, e.IntN(extent + 1), extent}) % (extent - lo + 1)
		*r = ir.Span(ir.Int(lo), ir.Int(lo+n))
	})},
	{"longer-operand", ruleOperands, onDimension(anyUse, func(e *edit, x *use, k int) {
		r := &x.Dims[k]
		r.Hi = pick(e.Rand, []ir.Expr{r.Hi.Add(ir.Int(1)), r.Hi.Add(r.Hi.Sub(r.Lo))})
		e.cover(x, k)
	})},
	{"empty-operand", ruleOperands, onRange(anyUse, func(_ *edit, r *ir.Range, _ int) { r.Hi = r.Lo })},
	{"range-by-position", ruleOperands, onDimension(anyUse, (*edit).byPosition)},
	{"operand-of-another-rank", ruleOperands, onView(isFixed, func(e *edit, x *use) { e.reshape(x, true) })},
	{"operand-of-another-shape", ruleOperands, onView(isFixed, func(e *edit, x *use) { e.reshape(x, false) })},
	{"temporary-of-another-shape", ruleOperands, onOp(makesTemporary, func(e *edit, o *ir.Op) {
		for i := range o.In {
			if n := len(o.In[i].Dims); n > 0 {
				o.In[i].Dims[n-1].Hi = o.In[i].Dims[n-1].Hi.Sub(ir.Int(1 + e.IntN(2)))
			}
		}
	})},
	{"drop-operand", ruleOperands, onOp(takesOperands, func(_ *edit, o *ir.Op) { o.In = o.In[:len(o.In)-1] })},
	{"one-operand-more", ruleOperands, onOp(takesOperands, func(e *edit, o *ir.Op) {
		o.In = append(o.In, pick(e.Rand, o.In))
	})},
	{"drop-result", ruleOperands, onOp(makesResults, func(_ *edit, o *ir.Op) { o.Out = o.Out[:len(o.Out)-1] })},
	{"one-result-more", ruleOperands, onOp(nil, func(e *edit, o *ir.Op) {
		o.Out = append(o.Out, ir.Operand{Buf: pick(e.Rand, []string{"%more", "%most"})})
	})},
	{"swap-operands", ruleOperands, onOp(takesOperands, func(e *edit, o *ir.Op) {
		i := e.IntN(len(o.In))
		o.In[0], o.In[i] = o.In[i], o.In[0]
	})},
	{"another-size", ruleOperands, onParam(isSize, func(e *edit, o *ir.Op, k int) {
		o.Params[k].Int = ir.Int(pick(e.Rand, numbers))
	})},
	{"half-or-double-size", ruleOperands, onParam(isSize, func(e *edit, o *ir.Op, k int) {
		n := o.Params[k].Int
		o.Params[k].Int = pick(e.Rand, []ir.Expr{n.Mul(2), n.Div(2)})
	})},
	{"parameter-at-a-limit", ruleOperands, onOp(nil, (*edit).limit)},
	{"part-or-whole", ruleOperands, onOp(func(o *ir.Op) bool { return o.Code == ir.ArgMax }, func(_ *edit, o *ir.Op) {
		if i := slices.IndexFunc(o.Params, func(p ir.Param) bool { return p.Key == "partial" }); i >= 0 {
			o.Params[i].Int = ir.Int(1).Sub(o.Params[i].Int)
		} else {
			o.Params = append(o.Params, intParam("partial", 1))
		}
	})},
}

// Rows of the cache, and everything else that depends on pos.
var positionOperators = []Operator{
	{"position-off-by-one", ruleMemory, onPosition(anyUse, func(e *edit, x *use, k int) {
		x.Dims[k].Hi = x.Dims[k].Hi.Add(ir.Int(e.sign()))
	})},
	{"position-to-the-end", ruleMemory, onPosition(anyUse, func(_ *edit, x *use, k int) {
		x.Dims[k].Hi = ir.Int(x.buf.Shape[k])
	})},
	{"append-beside-pos", ruleStep, onPosition(appends, func(e *edit, x *use, k int) { shift(&x.Dims[k], e.sign()) })},
	{"attend-to-new-row", ruleProvenance, onPosition(attends, func(_ *edit, x *use, k int) {
		keysAndValues(x, k, func(r *ir.Range) { r.Hi = r.Hi.Add(ir.Int(1)) })
	})},
	{"window-before-the-first-row", ruleMemory, onPosition(attends, func(e *edit, x *use, k int) {
		lo := ir.Symbol(ir.Pos).Sub(ir.Int(1 + e.IntN(3)))
		keysAndValues(x, k, func(r *ir.Range) { r.Lo = lo })
	})},
	{"another-share", ruleRace, onShare(anyUse, func(_ *edit, r *ir.Range) {
		r.Part = r.Part.Add(ir.Int(1)).Mod(max(1, r.Parts))
	})},
	{"another-block", ruleRace, onShare(writeUse, func(_ *edit, r *ir.Range) { r.Block++ })},
	{"rows-of-one-split", ruleStep, onShare(writeUse, func(e *edit, r *ir.Range) {
		r.Part = ir.Int(e.IntN(max(1, r.Parts)))
	})},
	{"rows-of-every-split", ruleRace, onShare(writeUse, func(_ *edit, r *ir.Range) { *r = ir.Span(r.Lo, r.Hi) })},
	{"other-head", ruleRace, onView(func(x *use) bool { return x.buf.Kind == ir.KVCache && x.aligned() },
		func(_ *edit, x *use) { next(&x.Dims[len(x.Dims)-4], x.buf.Shape[len(x.Dims)-4]) })},
}

// Names, indices and intervals.
var nameOperators = []Operator{
	{"buffer-name-twice", ruleStructure, func(e *edit) { e.buffer(nil).Name = e.buffer(nil).Name }},
	{"counter-name-twice", ruleStructure, func(e *edit) { e.counter(nil).Name = e.counter(nil).Name }},
	{"task-name-twice", ruleStructure, func(e *edit) { e.stage(nil).Name = e.stage(nil).Name }},
	{"page-name-twice", ruleStructure, onPage(func(e *edit, p *ir.Page) { p.Name = e.page(nil).Name })},
	{"variant-name-twice", ruleStructure, func(e *edit) { e.variant.Name = pick(e.Rand, e.prog.Variants).Name }},
	{"no-such-sm", ruleStructure, onStage(nil, func(e *edit, s *ir.Stage) {
		sms := ir.MaxSMs
		if e.prog.Target != nil {
			sms = e.prog.Target.SMs
		}
		if len(s.Dist.Spans) > 0 {
			s.Dist.Spans[0].SM = sms
		} else {
			s.Dist.SMs = sms + 1
		}
	})},
	{"no-such-counter", ruleStructure, onWait(func(_ *edit, s *ir.Stage, k int) { s.Waits[k].Counter = "nowhere" })},
	{"interval", ruleMemory, func(e *edit) { *pick(e.Rand, []*int{&e.variant.Lo, &e.variant.Hi}) += e.sign() }},
}

// Loops: iterations, and which member of a family or a group each of them names.
var loopOperators = []Operator{
	{"trip-count", ruleDeadlock, onLoop(func(e *edit, l *ir.Loop) { l.Count += e.sign() })},
	{"first-iteration", ruleRace, onLoop(func(_ *edit, l *ir.Loop) { l.First++ })},
	{"loop-step", ruleStructure, onLoop(func(e *edit, l *ir.Loop) {
		if l.Count > 1 {
			e.restep(&l.Step)
		}
	})},
	{"operand-of-next-iteration", ruleRace, onFamily(func(e *edit, x *use) { x.Buf = further(x.Buf) })},
	{"operand-of-iteration-before", ruleRace, onFamily(func(_ *edit, x *use) { x.Buf = shifted(x.Buf, -1) })},
	{"wait-of-next-iteration", ruleDeadlock, onWait(func(_ *edit, s *ir.Stage, k int) {
		s.Waits[k].Counter = further(s.Waits[k].Counter)
	})},
	{"wait-of-iteration-before", ruleRace, onWait(func(_ *edit, s *ir.Stage, k int) {
		s.Waits[k].Counter = shifted(s.Waits[k].Counter, -1)
	})},
	{"signal-of-next-iteration", ruleDeadlock, onStage(nil, func(_ *edit, s *ir.Stage) {
		s.Signal = further(s.Signal)
	})},
	{"family-one-shorter", ruleStructure, onBuffer(isFamily, func(_ *edit, b *ir.Buffer) { b.Count-- })},
	{"family-stride", ruleStructure, onBuffer(isFamily, func(e *edit, b *ir.Buffer) { e.restep(&b.Step) })},
	{"group-stride", ruleStructure, onGroup(func(e *edit, g *ir.Group) {
		if chance(e.Rand, 2) {
			g.First++
		} else {
			e.restep(&g.Step)
		}
	})},
	{"group-offset", ruleRace, onGroup(func(_ *edit, g *ir.Group) {
		g.Members = slices.Concat(g.Members[1:], g.Members[:1])
	})},
	{"swap-in-a-group", ruleRace, onGroup(func(e *edit, g *ir.Group) {
		i, k := e.IntN(len(g.Members)), e.IntN(len(g.Members))
		g.Members[i], g.Members[k] = g.Members[k], g.Members[i]
	})},
	{"repeat-in-a-group", ruleRace, onGroup(func(e *edit, g *ir.Group) {
		g.Members[e.IntN(len(g.Members))] = pick(e.Rand, g.Members)
	})},
	{"one-buffer-for-all-iterations", ruleRace, onBuffer(func(b *ir.Buffer) bool {
		return isFamily(b) && b.Kind == ir.Activation
	}, func(e *edit, b *ir.Buffer) {
		family := b.Name
		b.Name, b.First, b.Count, b.Step, b.Pages = "only", 0, 0, 0, b.Pages[:min(1, len(b.Pages))]
		e.everyOperand(func(o *ir.Operand) {
			if sameFamily(family, o.Buf) {
				o.Buf = "only"
			}
		})
	})},
	{"epoch-reused", ruleRace, onCounter(func(e *edit, c *ir.Counter) { // one counter counts for all iterations
		if c.Count < 2 {
			return
		}
		family := c.Name
		*c = ir.Counter{Name: "reused", How: c.How, Scope: c.Scope}
		for _, s := range e.stages {
			if sameFamily(family, s.Signal) {
				s.Signal = c.Name
			}
			for k := range s.Waits {
				if sameFamily(family, s.Waits[k].Counter) {
					s.Waits[k].Counter = c.Name
				}
			}
		}
	})},
	{"entry-dropped", ruleProvenance, (*edit).dropEntry},
	{"stored-once", ruleProvenance, (*edit).storeOnce},
}

// Passes of several tokens: rows of a pass, and sequences, that are taken for one another. Programs of one token are
// left alone.
var tokenOperators = []Operator{
	{"cache-of-another-sequence", ruleProvenance, onView(ofSequence, func(_ *edit, x *use) {
		next(&x.Dims[0], x.buf.Shape[0])
	})},
	{"one-cache-for-all-sequences", ruleRace, onView(ofSequence, func(e *edit, x *use) {
		for _, y := range e.uses(x.stage) {
			if y.buf == x.buf {
				y.Dims[0] = ir.Index(ir.Int(0))
			}
		}
	})},
	{"position-of-another-sequence", ruleStep, ofPass(onPosition(anyUse, func(e *edit, x *use, k int) {
		x.Dims[k].Lo, x.Dims[k].Hi = e.ofNextSequence(x.Dims[k].Lo), e.ofNextSequence(x.Dims[k].Hi)
	}))},
	{"row-of-another-sequence", ruleOperands, ofPass(onParam(ofRow, func(e *edit, o *ir.Op, k int) {
		o.Params[k].Int = e.ofNextSequence(o.Params[k].Int)
	}))},
	{"mask-off-by-one", ruleRace, ofPass(onPosition(attends, func(e *edit, x *use, k int) {
		by := ir.Int(e.sign())
		switch i := slices.IndexFunc(x.op.Params, func(p ir.Param) bool { return ofRow(&p) }); {
		case i >= 0 && chance(e.Rand, 3): // what each row sees, and not what the operands show of it
			x.op.Params[i].Int = x.op.Params[i].Int.Add(by)
		case chance(e.Rand, 3):
			keysAndValues(x, k, func(r *ir.Range) { r.Lo = r.Lo.Add(by) })
		default:
			keysAndValues(x, k, func(r *ir.Range) { r.Hi = r.Hi.Add(by) })
		}
	}))},
	{"operand-of-another-token", ruleProvenance, onTokens(func(_ *edit, x *use, k int) {
		next(&x.Dims[k], x.buf.Shape[k])
	})},
	{"tokens-shifted", ruleProvenance, onTokens(func(e *edit, x *use, k int) {
		shift(&x.Dims[k], pick(e.Rand, []int{-1, 1, e.prog.Pass.NumRows()}))
	})},
	{"a-token-less", ruleProvenance, onTokens(func(e *edit, x *use, k int) {
		lo, hi := e.IntN(2), -1
		equal(e, x, x.Dims[k], func(r *ir.Range) { r.Lo, r.Hi = r.Lo.Add(ir.Int(lo)), r.Hi.Add(ir.Int(hi+lo)) })
	})},
	{"row-not-appended", ruleStep, ofPass(onPosition(appends, func(e *edit, x *use, k int) {
		ranges := []*ir.Range{&x.Dims[k]}
		if len(x.op.In[0].Dims) > 0 { // not the rows of a temporary, which has as many as its op
			ranges = append(ranges, &x.op.In[0].Dims[0])
		}
		first := chance(e.Rand, 2)
		for _, r := range ranges {
			if first {
				r.Lo = r.Lo.Add(ir.Int(1))
			} else {
				r.Hi = r.Hi.Sub(ir.Int(1))
			}
		}
	}))},
	{"pass-of-another-form", ruleStructure, ofPass(func(e *edit) {
		s, r := e.prog.Pass.NumSequences(), e.prog.Pass.NumRows()
		e.prog.Pass = pick(e.Rand, []ir.Pass{ir.PassOf(r, s), ir.PassOf(s+1, r), ir.PassOf(s, r+1),
			ir.PassOf(max(1, s-1), r), ir.PassOf(s, max(1, r-1)), ir.PassOf(1, s*r)})
	})},
}
