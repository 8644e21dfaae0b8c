package population

import "amkc/ir"

// How a program ends.
const (
	soloTail = iota // one task makes the logits and the token
	joinTail        // logits on all SMs, a counted join, the token
	fullTail        // as amkc has it: the SMs exchange their best logits, and each samples, stops and joins; one emits
)

// stopIDs is how many ids can end a run.
const stopIDs = 2

// finish makes the stages behind the loop.
func (g *native) finish(x vector) {
	var stages []*ir.Stage
	switch g.tail {
	case soloTail:
		stages = g.solo(x)
	case joinTail:
		stages = g.joined(x)
	case fullTail:
		stages = g.full(x)
	}
	for _, s := range stages {
		g.variant.Body = append(g.variant.Body, s)
	}
	g.variant.Counters = append(g.variant.Counters, ir.Counter{Name: "step", How: ir.ByCounter})
	// Where few SMs signal step, care demands that counting leads to them from the others.
	if g.tail != fullTail && !g.slip() {
		for i := range g.variant.Counters {
			g.variant.Counters[i].How = ir.ByCounter
		}
	}
}

func (g *native) oneTask(name string) *ir.Stage {
	return &ir.Stage{Name: name, Dist: ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: g.r.IntN(g.sms), B: 1}}},
		Signal: "step"}
}

// logits is the op that makes a range of them.
func (g *native) logits(x vector, rows ir.Range) ir.Op {
	return newOp(ir.GEMV, views(viewOf("logits", rows)),
		views(viewOf(x.name, extent(x.n)), viewOf("head.weight", rows, extent(x.n))))
}

func (g *native) solo(x vector) []*ir.Stage {
	s := g.oneTask("head")
	g.wait(s, x)
	s.Ops = []ir.Op{g.logits(x, extent(g.vocab)),
		newOp(ir.ArgMax, views(viewOf("next", ir.Index(ir.Int(0)))), views(viewOf("logits", extent(g.vocab))))}
	return []*ir.Stage{s}
}

func (g *native) joined(x vector) []*ir.Stage {
	head := &ir.Stage{Name: "head", Dist: g.spans(g.vocab, 1, false), Signal: "head"}
	g.wait(head, x)
	head.Ops = []ir.Op{g.logits(x, span())}
	g.counter("head", 0, true)
	emit := g.oneTask("emit")
	g.wait(emit, vector{counter: "head", tasks: tasksOf(&head.Dist)})
	emit.Ops = []ir.Op{newOp(ir.ArgMax, views(viewOf("next", ir.Index(ir.Int(0)))),
		views(viewOf("logits", extent(g.vocab))))}
	return []*ir.Stage{head, emit}
}

func (g *native) full(x vector) []*ir.Stage {
	head := &ir.Stage{Name: "head", Dist: ir.Dist{Kind: ir.Spread, Extent: g.vocab, Grain: 1, SMs: g.sms,
		Rot: g.r.IntN(g.sms), Empty: !g.slip()}, Signal: "best"}
	g.wait(head, x)
	settings := viewOf("sampling", extent(ir.SamplingWords))
	best := views(viewOf("best.value", ir.Index(symSM)), viewOf("best.index", ir.Index(symSM)))
	head.Ops = []ir.Op{g.logits(x, span()),
		newOp(ir.SAMPLE, best, views(viewOf("logits", span()), settings), ir.IntParam("partial", ir.Int(1)),
			ir.IntParam("first", symA), ir.IntParam("pos", ir.Symbol(ir.Pos)))}
	g.counter("best", 0, false)
	everySM := ir.Dist{Kind: ir.Spread, Extent: g.sms, Grain: 1, SMs: g.sms}
	sample := &ir.Stage{Name: "sample", Dist: everySM}
	g.wait(sample, vector{counter: "best", tasks: tasksOf(&head.Dist)})
	sample.Ops = []ir.Op{newOp(ir.SAMPLE, views(viewOf("next.sm", span())),
		views(viewOf("best.value", extent(g.sms)), viewOf("best.index", extent(g.sms)), settings),
		ir.IntParam("pos", ir.Symbol(ir.Pos)))}
	stop := &ir.Stage{Name: "stop", Dist: everySM}
	stop.Ops = []ir.Op{newOp(ir.STOP, views(viewOf("stop", span())), views(viewOf("next.sm", span()),
		viewOf("stop.ids", extent(stopIDs)), viewOf("stop.last", ir.Index(ir.Int(0)))))}
	emit := &ir.Stage{Name: "emit", Dist: ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: 0, B: 1}}}}
	if g.slip() {
		emit.Dist.Spans[0].SM = g.r.IntN(g.sms) // the token is in another SM's shared memory, unless that is SM 0
	}
	emit.Ops = []ir.Op{newOp(ir.COPY, views(viewOf("next", ir.Index(ir.Int(0)))),
		views(viewOf("next.sm", ir.Index(ir.Int(0)))))}
	join := &ir.Stage{Name: "join", Dist: everySM, Ops: []ir.Op{newOp(ir.NOP, nil, nil)}, Signal: "step"}
	stages := []*ir.Stage{head, sample, stop, emit, join}
	if g.slip() { // something is done behind the join, or one SM does not join
		i := 1 + g.r.IntN(3)
		stages[i], stages[4] = join, stages[i]
	} else if g.slip() {
		join.Dist = ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: g.r.IntN(g.sms), B: 1}}}
	}
	return stages
}
