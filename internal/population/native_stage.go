package population

import "amkc/ir"

// A vector is an exchanged vector as the stages of an iteration name it.
type vector struct {
	name    string
	counter string
	n       int // elements
	tasks   int // that signal the counter
	leak    string
}

// spans draws a distribution of an axis. moving ones may put a span on another SM in every iteration.
func (g *native) spans(extent, grain int, moving bool) ir.Dist {
	d := ir.Dist{Kind: ir.Spread, Extent: extent, Grain: grain, SMs: g.sms}
	if g.sms > 2 && g.r.IntN(6) == 0 {
		d.SMs-- // one SM takes no part
	}
	switch g.r.IntN(6) {
	case 0:
		if extent <= 4 && grain == 1 {
			d.Kind = ir.ByUnit
		}
	case 1:
		return g.listed(extent, grain)
	}
	d.Rot = g.r.IntN(d.SMs)
	if moving && g.r.IntN(3) == 0 {
		d.Step = g.r.IntN(d.SMs)
	}
	return d
}

// listed draws an explicit distribution: contiguous spans on SMs in any order, sometimes two on one.
func (g *native) listed(extent, grain int) ir.Dist {
	d := ir.Dist{Kind: ir.Explicit}
	grains := extent / grain
	tasks := 1 + g.r.IntN(min(grains, g.sms))
	first := g.r.IntN(g.sms)
	for t := range tasks {
		sm := (first + t) % g.sms
		if g.r.IntN(5) == 0 {
			sm = first
		}
		d.Spans = append(d.Spans, ir.TaskSpan{SM: sm, A: grains * t / tasks * grain,
			B: grains * (t + 1) / tasks * grain})
	}
	return d
}

func tasksOf(d *ir.Dist) int { return len(d.Tasks(0)) }

// embed writes the first x, and the residual.
func (g *native) embed() vector {
	s := &ir.Stage{Name: "embed", Dist: g.home, Signal: "L00.x"}
	out := views(viewOf("L00.x", span()))
	if g.resid {
		out = views(viewOf("residual", span()), out[0])
	}
	s.Ops = []ir.Op{newOp(ir.EMBED, out,
		views(viewOf("token", ir.Index(ir.Int(0))), viewOf("embed.weight", extent(g.vocab), span())))}
	g.counter("L{i}.x", g.layers+1, len(g.links) > 0 && g.links[len(g.links)-1].kind == leakLink)
	g.variant.Body = append(g.variant.Body, s)
	return vector{name: "L{i}.x", counter: "L{i}.x", n: g.width, tasks: tasksOf(&g.home)}
}

// iteration makes the stages of the loop.
func (g *native) iteration(x vector) []*ir.Stage {
	var body []*ir.Stage
	earlier, in := []vector{}, x
	for j := range g.links {
		l := &g.links[j]
		var stages []*ir.Stage
		var out vector
		if l.kind == attnLink || l.kind == splitLink {
			stages, out = g.attention(l, in)
		} else {
			stages, out = g.chain(j, l, in, earlier)
		}
		body = append(body, stages...)
		if g.watch && j == 0 {
			body = append(body, g.watcher(x))
		}
		earlier, in = append(earlier, in), out
	}
	return body
}

// watcher is a task that reads x and tells nobody but the step's end.
func (g *native) watcher(x vector) *ir.Stage {
	s := &ir.Stage{Name: "L{i}.watch", Dist: ir.Dist{Kind: ir.Explicit,
		Spans: []ir.TaskSpan{{SM: g.r.IntN(g.sms), B: 1}}}, Signal: "step"}
	g.wait(s, x)
	s.Ops = []ir.Op{newOp(ir.COPY, views(tempOf("%seen")), views(viewOf(x.name, extent(x.n))))}
	return s
}

func (g *native) wait(s *ir.Stage, v vector) {
	for _, w := range s.Waits {
		if w.Counter == v.counter {
			return
		}
	}
	if !g.slip() {
		s.Waits = append(s.Waits, ir.Wait{Counter: v.counter, Threshold: v.tasks})
	}
}

// chain makes the stage of a link that is not attention.
func (g *native) chain(j int, l *link, in vector, earlier []vector) ([]*ir.Stage, vector) {
	last := j == len(g.links)-1
	grain := 1
	if l.kind == siluLink {
		grain = 2
	}
	s := &ir.Stage{Name: l.name, Signal: l.name}
	if last {
		s.Name = "L{i}.down"
	}
	switch {
	case l.kind == nextLink && !last:
		s.Dist = ir.Dist{Kind: ir.ByUnit, Extent: l.n, Grain: 1, SMs: g.sms, Rot: g.r.IntN(g.sms)}
	case last && l.kind == siluLink:
		s.Dist = g.doubled()
	case last || l.kind == addLink: // rows of the residual stay on their SM, and as many tasks as embed has signal x
		s.Dist = g.home
		if s.Dist.Kind != ir.Explicit && g.slip() {
			s.Dist.Rot = (s.Dist.Rot + 1) % s.Dist.SMs
		}
	default:
		s.Dist = g.spans(l.n*grain, grain, true)
	}
	out := vector{name: l.name, counter: l.name, n: l.n, tasks: tasksOf(&s.Dist)}
	g.wait(s, in)
	s.Ops = g.ops(j, l, in, earlier, s, &out)
	if !last {
		g.counter(l.name, g.layers, l.plain || l.kind == leakLink)
	}
	return []*ir.Stage{s}, out
}

// doubled is the distribution of embed on an axis of twice as many elements.
func (g *native) doubled() ir.Dist {
	d := g.home
	if d.Kind == ir.ByUnit {
		d.Kind = ir.Spread
		d.SMs = g.sms
		if g.sms < d.Extent { // as many tasks as there are units, wherever they are
			d = ir.Dist{Kind: ir.Explicit}
			for u := range g.home.Extent {
				d.Spans = append(d.Spans, ir.TaskSpan{SM: u % g.sms, A: u, B: u + 1})
			}
		}
	}
	d.Extent, d.Grain = 2*d.Extent, 2
	spans := d.Spans
	d.Spans = nil
	for _, t := range spans {
		d.Spans = append(d.Spans, ir.TaskSpan{SM: t.SM, A: 2 * t.A, B: 2 * t.B})
	}
	if d.Kind == ir.Explicit {
		d.Extent, d.Grain = 0, 0
	}
	return d
}

// ops makes the ops of a stage: what it polls first, then what it publishes.
func (g *native) ops(j int, l *link, in vector, earlier []vector, s *ir.Stage, out *vector) []ir.Op {
	result := views(viewOf(l.name, span()))
	gemv := func(to []ir.Operand, x ir.Operand, lo, hi int) ir.Op {
		return newOp(ir.GEMV, to, views(x, viewOf("L{i}.weight", span(), ir.Span(ir.Int(lo), ir.Int(hi)))))
	}
	whole := viewOf(in.name, extent(in.n))
	var ops []ir.Op
	if in.leak != "" { // what the writer of the vector left in plain memory
		ops = append(ops, newOp(ir.COPY, views(tempOf("%leak")), views(viewOf(in.leak, extent(in.n)))))
	}
	switch l.kind {
	case normLink:
		return append(ops, newOp(ir.RMSNORM, views(tempOf("%n")), views(whole, viewOf("L{i}.norm", extent(in.n))),
			ir.FloatParam("eps", 1e-5)),
			gemv(result, tempOf("%n"), 0, in.n))
	case siluLink:
		half := ir.Span(symA.Div(2), symB.Div(2))
		return append(ops, gemv(views(tempOf("%y")), whole, 0, in.n),
			newOp(ir.SiluMul, views(viewOf(l.name, half)), views(tempOf("%y"))))
	case addLink:
		sum := viewOf("residual", span())
		return append(ops, gemv(views(tempOf("%y")), whole, 0, in.n),
			newOp(ir.ADD, views(sum, result[0]), views(sum, tempOf("%y"))))
	case halfLink:
		lo, hi := 0, (in.n+1)/2
		if g.r.IntN(2) == 0 {
			lo, hi = in.n/2, in.n
		}
		return append(ops, gemv(result, viewOf(in.name, ir.Span(ir.Int(lo), ir.Int(hi))), lo, hi))
	case ownLink:
		return append(ops, newOp(ir.MUL, result, views(viewOf(in.name, span())), ir.FloatParam("scale", 0.5)))
	case nextLink:
		if s.Dist.Kind == ir.ByUnit {
			return append(ops, newOp(ir.COPY, views(viewOf(l.name, ir.Index(symA))),
				views(viewOf(in.name, ir.Index(symA.Add(ir.Int(1)).Mod(in.n))))))
		}
		return append(ops, newOp(ir.COPY, result,
			views(viewOf(in.name, ir.Span(ir.Int(in.n).Sub(symB), ir.Int(in.n).Sub(symA))))))
	case secondLink:
		z := earlier[g.r.IntN(len(earlier))]
		g.wait(s, z)
		second := gemv(views(tempOf("%z")), viewOf(z.name, extent(z.n)), 0, z.n)
		if g.slip() { // polls after it has published
			return append(ops, gemv(result, whole, 0, in.n), second)
		}
		return append(ops, second, gemv(views(tempOf("%y")), whole, 0, in.n),
			newOp(ir.ADD, result, views(tempOf("%y"), tempOf("%z"))))
	case leakLink:
		out.leak = leakName(j)
		return append(ops, gemv(append(views(viewOf(out.leak, span())), result...), whole, 0, in.n))
	}
	return append(ops, gemv(result, whole, 0, in.n))
}
