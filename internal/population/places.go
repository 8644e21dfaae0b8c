package population

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"amkc/ir"
)

// The places of a program that an operator can change: each function below turns a change of one place into a change
// of a program, which draws the place. Where there is none, nothing changes.

func onStage(ok func(*edit, *ir.Stage) bool, change func(*edit, *ir.Stage)) func(*edit) {
	return func(e *edit) {
		if s := e.stage(func(s *ir.Stage) bool { return ok == nil || ok(e, s) }); e.some(s != nil) {
			change(e, s)
		}
	}
}

func onWait(change func(e *edit, s *ir.Stage, wait int)) func(*edit) {
	return onStage(func(_ *edit, s *ir.Stage) bool { return len(s.Waits) > 0 },
		func(e *edit, s *ir.Stage) { change(e, s, e.IntN(len(s.Waits))) })
}

// onOps is for a stage with at least that number of ops.
func onOps(least int, change func(e *edit, s *ir.Stage, op int)) func(*edit) {
	return onStage(func(_ *edit, s *ir.Stage) bool { return len(s.Ops) >= least },
		func(e *edit, s *ir.Stage) { change(e, s, e.IntN(len(s.Ops))) })
}

func onOp(ok func(*ir.Op) bool, change func(*edit, *ir.Op)) func(*edit) {
	return func(e *edit) {
		if o := e.op(ok); e.some(o != nil) {
			change(e, o)
		}
	}
}

func onParam(ok func(*ir.Param) bool, change func(e *edit, o *ir.Op, param int)) func(*edit) {
	is := func(p ir.Param) bool { return ok == nil || ok(&p) }
	return onOp(func(o *ir.Op) bool { return slices.ContainsFunc(o.Params, is) }, func(e *edit, o *ir.Op) {
		for _, k := range e.Perm(len(o.Params)) {
			if is(o.Params[k]) {
				change(e, o, k)
				return
			}
		}
	})
}

func onView(ok func(*use) bool, change func(*edit, *use)) func(*edit) {
	return func(e *edit) {
		if x := e.view(ok); e.some(x != nil) {
			change(e, x)
		}
	}
}

// onFamily is for a view of a member of a family that tasks write.
func onFamily(change func(*edit, *use)) func(*edit) {
	return onView(func(x *use) bool { return ir.IsFamily(x.Buf) && !x.buf.Kind.ReadOnly() }, change)
}

// onDimension is for a view that has as many ranges as its buffer has dimensions, and for one of them.
func onDimension(ok func(*use) bool, change func(e *edit, x *use, dim int)) func(*edit) {
	return onView(func(x *use) bool { return x.aligned() && ok(x) },
		func(e *edit, x *use) { change(e, x, e.IntN(len(x.Dims))) })
}

// onRange changes a range of a view, and is told the extent of its dimension.
func onRange(ok func(*use) bool, change func(e *edit, r *ir.Range, extent int)) func(*edit) {
	return onDimension(ok, func(e *edit, x *use, dim int) { change(e, &x.Dims[dim], x.buf.Shape[dim]) })
}

// onSpan moves the bounds of a range of a view and of every equal one in the same task, so that the operands of its
// ops still agree: rows of the weight with the elements they make.
func onSpan(ok func(*use) bool, lo, hi int) func(*edit) {
	return onView(func(x *use) bool { return len(x.Dims) > 0 && ok(x) }, func(e *edit, x *use) {
		by := 1
		if lo == hi {
			by = e.sign()
		}
		equal(e, x, pick(e.Rand, x.Dims), func(r *ir.Range) {
			r.Lo, r.Hi = r.Lo.Add(ir.Int(by*lo)), r.Hi.Add(ir.Int(by*hi))
		})
	})
}

// equal changes every range of a view's stage that has the bounds of one.
func equal(e *edit, x *use, of ir.Range, change func(*ir.Range)) {
	for _, y := range e.uses(x.stage) {
		for k := range y.Dims {
			if r := &y.Dims[k]; r.Lo.Equal(of.Lo) && r.Hi.Equal(of.Hi) {
				change(r)
			}
		}
	}
}

// onPosition is for a view with a bound that depends on pos, in the given dimension.
func onPosition(ok func(*use) bool, change func(e *edit, x *use, dim int)) func(*edit) {
	moves := func(r ir.Range) bool { return r.Lo.Uses(ir.Pos) || r.Hi.Uses(ir.Pos) }
	return onView(func(x *use) bool { return x.aligned() && slices.ContainsFunc(x.Dims, moves) && ok(x) },
		func(e *edit, x *use) { change(e, x, slices.IndexFunc(x.Dims, moves)) })
}

// onShare is for a range of which a task has a part.
func onShare(ok func(*use) bool, change func(*edit, *ir.Range)) func(*edit) {
	return onView(func(x *use) bool { return slices.ContainsFunc(x.Dims, ir.Range.Shared) && ok(x) },
		func(e *edit, x *use) { change(e, &x.Dims[slices.IndexFunc(x.Dims, ir.Range.Shared)]) })
}

func onBuffer(ok func(*ir.Buffer) bool, change func(*edit, *ir.Buffer)) func(*edit) {
	return func(e *edit) {
		if b := e.buffer(ok); e.some(b != nil) {
			change(e, b)
		}
	}
}

func onCounter(change func(*edit, *ir.Counter)) func(*edit) {
	return func(e *edit) { change(e, e.counter(nil)) }
}

// onPage is for a page that some buffer is on.
func onPage(change func(*edit, *ir.Page)) func(*edit) {
	return func(e *edit) {
		p := e.page(func(p *ir.Page) bool {
			return slices.ContainsFunc(e.prog.Buffers, func(b ir.Buffer) bool {
				return slices.Contains(b.Pages, p.Name)
			})
		})
		if e.some(p != nil) {
			change(e, p)
		}
	}
}

// onGroup is for a group of activations.
func onGroup(change func(*edit, *ir.Group)) func(*edit) {
	return func(e *edit) {
		g := one(e.Rand, e.prog.Groups, func(g *ir.Group) bool {
			b := e.bufferNamed(g.Members[0])
			return b != nil && b.Kind == ir.Activation && len(g.Members) > 1
		})
		if e.some(g != nil) {
			change(e, g)
		}
	}
}

func onLoop(change func(*edit, *ir.Loop)) func(*edit) {
	return onStage(func(e *edit, s *ir.Stage) bool { return e.loops[s] != nil },
		func(e *edit, s *ir.Stage) { change(e, e.loops[s]) })
}

// onTokens is for a view with a dimension of the tokens of a pass, or of the rows of one sequence.
func onTokens(change func(e *edit, x *use, dim int)) func(*edit) {
	return ofPass(func(e *edit) {
		dim := func(x *use) int {
			switch n := e.prog.Pass.NumRows(); {
			case !x.aligned() || x.buf.Kind == ir.KVCache || x.buf.Kind.ReadOnly() && x.buf.Role != ir.RoleToken:
				return -1
			case x.buf.Shape[0] == e.prog.Pass.NumTokens():
				return 0
			case n > 1 && len(x.Dims) > 2 && x.buf.Shape[1] == n: // of partial results
				return 1
			}
			return -1
		}
		if x := e.view(func(x *use) bool { return dim(x) >= 0 }); e.some(x != nil) {
			change(e, x, dim(x))
		}
	})
}

// ofPass changes programs for passes of several tokens alone.
func ofPass(change func(*edit)) func(*edit) {
	return func(e *edit) {
		if e.some(e.prog.Pass.NumTokens() > 1) {
			change(e)
		}
	}
}

// some notes whether there is a place, and reports it.
func (e *edit) some(is bool) bool {
	e.none = !is
	return is
}

func anyUse(*use) bool        { return true }
func readUse(x *use) bool     { return !x.write && !x.buf.Kind.ReadOnly() }
func writeUse(x *use) bool    { return x.write }
func appends(x *use) bool     { return x.op.Code == ir.KVAppend && x.write }
func paged(b *ir.Buffer) bool { return len(b.Pages) > 0 }

// attends is a view of the keys that attention reads.
func attends(x *use) bool {
	return x.op.Code == ir.ATTENTION && !x.write && x.arg == 1 && len(x.op.In) > 2
}

// ofSequence is a view of the cache of one of several sequences: cache of a sequence, head, row, k or v, element.
func ofSequence(x *use) bool {
	return x.buf.Kind == ir.KVCache && x.aligned() && len(x.Dims) == ir.MaxRank
}

// isFixed is a view between constants of the whole of what no task writes, so that it can have a buffer of its own.
func isFixed(x *use) bool {
	return !x.write && x.buf.Kind.ReadOnly() && x.buf.Count == 0 && x.aligned() && constantLengths(x.Dims) != nil
}

func isFamily(b *ir.Buffer) bool   { return b.Count > 1 }
func alternates(b *ir.Buffer) bool { return len(b.Pages) > 1 && b.Pages[0] != b.Pages[1] }
func makesTemporary(o *ir.Op) bool { return slices.ContainsFunc(o.Out, ir.Operand.IsTemp) }
func makesResults(o *ir.Op) bool   { return len(o.Out) > 0 }
func takesOperands(o *ir.Op) bool  { return len(o.In) > 0 }
func placed(s *ir.Stage) bool {
	return (s.Dist.Kind == ir.Spread || s.Dist.Kind == ir.ByUnit) && s.Dist.SMs > 1
}
func intParam(key string, n int) ir.Param { return ir.IntParam(key, ir.Int(n)) }

// ofRow is a parameter that each token of a pass has a value of its own for.
func ofRow(p *ir.Param) bool {
	return !p.IsFloat && p.Int.Uses(ir.Pos) && (p.Key == "row" || p.Key == "pos")
}

// isSize is a parameter that operands have to agree with.
func isSize(p *ir.Param) bool {
	return !p.IsFloat && slices.Contains([]string{"head_dim", "n_heads", "n_kv_heads", "group", "splits", "first",
		"limit", "order", "flags", "parts", "block", "part"}, p.Key)
}

// numbers are values of parameters that are near some limit.
var numbers = []int{0, 1, -1, 2, 3, 4, 6, 7, 8, math.MaxInt32, math.MaxInt32 + 1, -math.MaxInt32, 1 << 40}

// meet reports whether tasks of two stages may run on one SM.
func meet(s, t *ir.Stage) bool {
	a, b := s.Dist.Spans, t.Dist.Spans
	return len(a) != 1 || len(b) != 1 || a[0].SM == b[0].SM
}

func (e *edit) sign() int { return 1 - 2*e.IntN(2) }

// realise changes a counter that some stage waits on from one realisation to another.
func realise(from, to ir.Realisation) func(*edit, *ir.Stage, int) {
	return func(e *edit, s *ir.Stage, k int) {
		if c := e.counterNamed(s.Waits[k].Counter); c != nil && c.How == from {
			c.How = to
		}
	}
}

// span returns a listed task.
func (e *edit) span() *ir.TaskSpan {
	s := e.stage(func(s *ir.Stage) bool { return len(s.Dist.Spans) > 0 })
	if s == nil {
		return nil
	}
	return &s.Dist.Spans[e.IntN(len(s.Dist.Spans))]
}

// move puts a task on another SM, or rotates a stage by one.
func (e *edit) move(s *ir.Stage) {
	switch d := &s.Dist; {
	case len(d.Spans) > 0:
		sm := &d.Spans[e.IntN(len(d.Spans))].SM
		if other := e.span(); *sm > 0 {
			*sm = e.IntN(*sm)
		} else {
			*sm = max(1, other.SM)
		}
	case placed(s):
		d.Rot = (d.Rot + 1) % d.SMs
	}
}

// waitsFor changes every wait for a counter.
func (e *edit) waitsFor(counter string, change func(*ir.Wait)) {
	for _, s := range e.stages {
		for k := range s.Waits {
			if s.Waits[k].Counter == counter {
				change(&s.Waits[k])
			}
		}
	}
}

// everyOperand changes operands of all variants.
func (e *edit) everyOperand(change func(*ir.Operand)) {
	of := func(s *ir.Stage) {
		for _, x := range e.uses(s) {
			change(x.Operand)
		}
	}
	for i := range e.prog.Variants {
		for _, n := range e.prog.Variants[i].Body {
			switch n := n.(type) {
			case *ir.Stage:
				of(n)
			case *ir.Loop:
				for _, s := range n.Body {
					of(s)
				}
			}
		}
	}
}

// oneCounterForTwo lets the producers of two counters signal one. Who waits on either waits for all of them, or,
// since a count is not a name, for as many as before and not for whom.
func (e *edit) oneCounterForTwo() {
	from := e.counter(func(c *ir.Counter) bool { return c.Count == 0 && e.producers(c.Name) > 0 })
	to := e.counter(func(c *ir.Counter) bool { return c.Count == 0 && e.producers(c.Name) > 0 && c != from })
	if from == nil || to == nil {
		return
	}
	total, partial := e.producers(from.Name)+e.producers(to.Name), chance(e.Rand, 2)
	for _, s := range e.stages {
		if s.Signal == from.Name {
			s.Signal = to.Name
		}
	}
	for _, c := range []*ir.Counter{from, to} {
		e.waitsFor(c.Name, func(w *ir.Wait) {
			if w.Counter = to.Name; !partial {
				w.Threshold = total
			}
		})
	}
}

// redirect makes a view one of another buffer that is fit for it.
func redirect(ok func(*use) bool, fit func(*use, *ir.Buffer) bool) func(*edit) {
	return onView(ok, func(e *edit, x *use) {
		if b := e.buffer(func(b *ir.Buffer) bool { return b != x.buf && fit(x, b) }); b != nil {
			x.Buf = e.nameIn(x.stage, b.Name, b.First)
		}
	})
}

// fits reports whether a view lies inside a buffer of the same type, as far as its bounds are constant.
func fits(x *use, b *ir.Buffer) bool {
	if len(x.Dims) != len(b.Shape) || b.DType != x.buf.DType {
		return false
	}
	for k := range x.Dims {
		if hi, ok := x.Dims[k].Hi.IsConst(); ok && hi > b.Shape[k] {
			return false
		}
	}
	return true
}

// keysAndValues changes both operands of attention alike.
func keysAndValues(x *use, dim int, change func(*ir.Range)) {
	for _, i := range []int{1, 2} {
		if dim < len(x.op.In[i].Dims) {
			change(&x.op.In[i].Dims[dim])
		}
	}
}

// next makes a range that many elements further on, and the last one the first.
func next(r *ir.Range, extent int) {
	length, by := r.Hi.Sub(r.Lo), 1
	if n, ok := length.IsConst(); ok && n < extent && n > 0 && extent%n == 0 {
		by = n
	}
	r.Lo = r.Lo.Add(ir.Int(by)).Mod(extent)
	r.Hi = r.Lo.Add(length)
}

// further names the member one further on, or one less far: {i+1} for {i}, and {i} for {i+1}.
func further(name string) string {
	if strings.Contains(name, "{i}") {
		return shifted(name, 1)
	}
	return shifted(name, -1)
}

// restep makes a step one more or one less.
func (e *edit) restep(step *int) {
	was := max(1, *step)
	if *step = was + 1; was > 1 && chance(e.Rand, 2) {
		*step = was - 1
	}
}

// cover makes a buffer as large as one of its views needs at every position, most of the time.
func (e *edit) cover(x *use, dim int) {
	for pos := e.variant.Lo; pos <= e.variant.Hi && !chance(e.Rand, 10); pos++ {
		x.buf.Shape[dim] = max(x.buf.Shape[dim], x.Dims[dim].Hi.At(pos))
	}
}

// byPosition makes a range depend on the position, or deals it out.
func (e *edit) byPosition(x *use, dim int) {
	pos, n, r := ir.Symbol(ir.Pos), ir.Int(1+e.IntN(3)), &x.Dims[dim]
	length := r.Hi.Sub(r.Lo)
	*r = pick(e.Rand, []ir.Range{ir.Span(ir.Int(0), pos), ir.Span(pos, pos.Add(n)), ir.Span(pos, pos), ir.Index(pos),
		ir.Span(ir.Int(0), pos.Min(ir.Int(2))), ir.Span(pos.Mod(2), pos.Mod(2).Add(length)),
		ir.Span(pos.Div(2).Mul(2), pos.Add(ir.Int(1))),
		ir.Share(r.Lo, r.Hi, e.IntN(3), ir.Int(e.IntN(4)-1), e.IntN(4)),
		ir.Share(pos, pos.Add(n), 1, pos.Mod(2), 2), ir.Share(ir.Int(0), length.Mul(2), 1, pos.Mod(2), 2),
		ir.Span(r.Lo, r.Hi.Add(ir.PosOf(ir.Int(e.IntN(3)))).Sub(pos))})
	e.cover(x, dim)
}

// limit gives an op a parameter, one that it has or another, of a value that few parameters take.
func (e *edit) limit(o *ir.Op) {
	pos, row := ir.Symbol(ir.Pos), ir.Symbol(ir.Row)
	key := pick(e.Rand, append(ir.Ops[o.Code].Keys(false), "head_dim", "partial", "window"))
	p := ir.IntParam(key, ir.Int(pick(e.Rand, numbers)))
	switch e.IntN(4) {
	case 0:
		p = ir.FloatParam(key, pick(e.Rand, []float64{0, 1, 2.5, -1, math.NaN(), math.Inf(1)}))
	case 1:
		p.Int = pick(e.Rand, []ir.Expr{pos, pos.Sub(ir.Int(1)), ir.Symbol(ir.OnSM), ir.PosOf(ir.Int(1)), ir.PosOf(row),
			pos.Sub(row), row})
	}
	o.Params = append(slices.DeleteFunc(o.Params, func(p ir.Param) bool { return p.Key == key }), p)
}

// reshape makes an operand the whole of a buffer of its own: with as many elements in another number of dimensions, or
// with its dimensions in another order or of other lengths.
func (e *edit) reshape(x *use, rank bool) {
	n := constantLengths(x.Dims)
	last := len(n) - 1
	switch {
	case rank && last < 3 && (last == 0 || chance(e.Rand, 2)):
		by := 1
		if n[last]%2 == 0 && chance(e.Rand, 2) {
			by = 2
		}
		n[last] /= by
		n = slices.Insert(n, e.IntN(last+1), by)
	case rank && last > 0:
		n = append(n[:last-1], n[last-1]*n[last])
	case last > 0 && chance(e.Rand, 2):
		n[0], n[last] = n[last], n[0]
	default:
		i := e.IntN(len(n))
		n[i] = pick(e.Rand, []int{1, 2 * n[i], (n[i] + 1) / 2, n[i] + 1})
	}
	b := *x.buf
	b.Name, b.Shape, b.Layout, b.Pieces = "reshaped", n, ir.Layout{}, nil
	for e.bufferNamed(b.Name) != nil {
		b.Name += "+"
	}
	if b.LacksAxis(e.prog.Pass) != "" {
		return // wrong, but of the program and not of the op
	}
	e.prog.Buffers = append(e.prog.Buffers, b)
	*x.Operand = ir.Operand{Buf: b.Name}
	for _, n := range n {
		x.Dims = append(x.Dims, ir.Span(ir.Int(0), ir.Int(n)))
	}
}

// constantLengths returns the lengths of ranges between constants that are not empty; nil if there are others.
func constantLengths(dims []ir.Range) (out []int) {
	for _, r := range dims {
		lo, ok1 := r.Lo.IsConst()
		hi, ok2 := r.Hi.IsConst()
		if !ok1 || !ok2 || hi <= lo || r.Shared() {
			return nil
		}
		out = append(out, hi-lo)
	}
	return out
}

// dropEntry lets a stage before a loop write elsewhere what the first iteration reads.
func (e *edit) dropEntry() {
	entries, first := map[string]bool{}, len(e.stages)
	for i, s := range e.stages {
		if l := e.loops[s]; l != nil {
			first = min(first, i)
			for _, x := range e.uses(s) {
				if name, err := ir.Resolve(x.Buf, l.First); err == nil && !x.write {
					entries[e.ungrouped(name)] = true
				}
			}
		}
	}
	x := e.view(func(x *use) bool {
		return x.write && slices.Index(e.stages, x.stage) < first && entries[x.Buf]
	})
	if x != nil {
		aside := *x.buf
		aside.Name, aside.First, aside.Count, aside.Step, aside.Pages = "aside", 0, 0, 0, nil
		e.prog.Buffers = append(e.prog.Buffers, aside)
		x.Buf = aside.Name
	}
}

// ungrouped returns the buffer that a resolved name stands for.
func (e *edit) ungrouped(name string) string {
	for _, g := range e.prog.Groups {
		for k, member := range g.Members {
			if full, err := ir.Resolve(g.Name, g.Index(k)); err == nil && full == name {
				return member
			}
		}
	}
	return name
}

// storeOnce takes an op that stores ordinary memory in each iteration out of its loop, and stores the last iteration's
// after the loop.
func (e *edit) storeOnce() {
	x := e.view(func(x *use) bool {
		l := e.loops[x.stage]
		return l != nil && l.Count > 1 && x.write && x.op.Code == ir.COPY && ir.IsFamily(x.Buf) &&
			!x.op.In[0].IsTemp() && len(x.stage.Ops) > 1 && x.buf.Kind == ir.Activation &&
			!x.buf.Layout.Words() && x.buf.Space != ir.SMEM
	})
	if x == nil {
		return
	}
	s, loop := x.stage, e.loops[x.stage]
	once := clonedStage(s)
	k := slices.IndexFunc(s.Ops, func(o ir.Op) bool { return len(o.Out) > 0 && &o.Out[0] == &x.op.Out[0] })
	once.Name, once.Signal, once.Ops = s.Name+".once", "step", once.Ops[k:k+1]
	s.Ops = slices.Delete(s.Ops, k, k+1)
	i := slices.Index(e.variant.Body, ir.Node(loop))
	e.variant.Body = slices.Insert(e.variant.Body, i+1, ir.Node(resolved(once, loop.Last())))
}

// resolved is a stage of an iteration as one that stands alone.
func resolved(s *ir.Stage, i int) *ir.Stage {
	out := clonedStage(s)
	out.Name, out.Signal = resolve(s.Name, i), resolve(s.Signal, i)
	for k := range out.Waits {
		out.Waits[k].Counter = resolve(out.Waits[k].Counter, i)
	}
	for k := range out.Ops {
		for _, list := range [][]ir.Operand{out.Ops[k].In, out.Ops[k].Out} {
			for v := range list {
				list[v].Buf = resolve(list[v].Buf, i)
			}
		}
	}
	return out
}

var positionText = regexp.MustCompile(`pos\[[^]]*\]|pos`)

// ofNextSequence makes positions those of the next sequence, and of the last one those of the first.
func (e *edit) ofNextSequence(x ir.Expr) ir.Expr {
	n := e.prog.Pass.NumSequences()
	parse := func(text string) ir.Expr {
		x, err := ir.ParseExpr(text)
		if err != nil {
			panic("population: " + text + ": " + err.Error()) // it was printed by package ir
		}
		return x
	}
	return parse(positionText.ReplaceAllStringFunc(x.String(), func(pos string) string {
		sequence := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(pos, "pos"), "["), "]")
		if sequence == "" {
			sequence = "0"
		}
		return ir.PosOf(parse(sequence).Add(ir.Int(1)).Mod(n)).String()
	}))
}
