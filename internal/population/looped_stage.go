package population

import (
	"slices"
	"strconv"

	"amkc/ir"
)

// start is the embedding.
func (g *looped) start() {
	s := &ir.Stage{Name: "embed", Dist: g.home, Signal: "L00.x"}
	out := views(viewOf(g.x(0), span()))
	if g.resid {
		out = views(viewOf("residual", span()), out[0])
	}
	s.Ops = []ir.Op{newOp(ir.EMBED, out,
		views(viewOf("token", ir.Index(ir.Int(0))), viewOf("embed.weight", extent(g.vocab), span())))}
	g.counter("L{i}.x", g.layers+1, g.plain || g.stores())
	g.variant.Body = append(g.variant.Body, s)
}

// segment makes the layers of one, and declares what is their own.
func (g *looped) segment(s *segment) {
	loop := &ir.Loop{Name: s.name, First: s.first, Count: s.count}
	loop.Step = s.step()
	stored := slices.Clone(g.stored) // of the segments before
	for k := range s.layers {
		if g.chain == chainRagged {
			g.group(s, k, s.name+".in{i}", func(index int) string { return g.ring[index] })
			g.group(s, k, s.name+".out{i}", func(index int) string { return g.ring[index+1] })
		}
		loop.Body = append(loop.Body, g.layer(s, k, stored)...)
	}
	if s.count > 0 {
		g.variant.Body = append(g.variant.Body, loop)
		return
	}
	for _, stage := range loop.Body {
		g.variant.Body = append(g.variant.Body, resolved(stage, s.first))
	}
}

// step is what a program holds between the indices of a segment's iterations.
func (s *segment) step() int {
	if s.period == 1 {
		return 0
	}
	return s.period
}

// layer makes the k-th layer of an iteration: one stage, or two with u between them.
func (g *looped) layer(s *segment, k int, stored []string) []*ir.Stage {
	l := &s.layers[k]
	g.weights(s, k)
	in := vector{name: g.input(s, k), counter: shifted("L{i}.x", k), n: g.width, tasks: tasksOf(&g.home)}
	down := &ir.Stage{Name: shifted(s.name+"{i}.down", k), Dist: g.home, Signal: shifted("L{i}.x", k+1)}
	if !l.wide {
		g.wait(down, in)
		down.Ops = append(g.asides(s, k, stored, in), g.product(s, k, in.name, g.output(s, k))...)
		return []*ir.Stage{down}
	}
	u := shifted(s.name+"{i}.u", k)
	up := &ir.Stage{Name: u, Dist: g.spans(g.width, 1, true), Signal: u}
	g.wait(up, in)
	up.Ops = append(g.asides(s, k, stored, in),
		newOp(ir.GEMV, views(viewOf(u, span())), views(viewOf(in.name, extent(g.width)), g.weight(s, k))))
	b := g.activation(s.name + "{i}.u")
	if g.r.IntN(2) == 0 {
		b.Pages = []string{g.newPage(s.name + ".u" + strconv.Itoa(k))}
		if g.r.IntN(4) == 0 && s.count > 1 {
			b.Pages = append(b.Pages, g.newPage(s.name+".u"+strconv.Itoa(k)+".odd"))
		}
	}
	g.family(s, k, b)
	g.counter(s.name+"{i}.u", 0, g.plain || g.stores())
	c := &g.variant.Counters[len(g.variant.Counters)-1]
	if c.First, c.Count, c.Step = s.first+k, s.count, s.step(); s.count == 0 {
		c.Name, c.First = resolve(c.Name, s.first), 0
	}
	g.wait(down, vector{counter: u, tasks: tasksOf(&up.Dist)})
	down.Ops = g.product(s, k, u, g.output(s, k))
	return []*ir.Stage{up, down}
}

// asides are what the first stage of a layer does besides: it reads what an earlier loop has stored, and stores a
// part of x.
func (g *looped) asides(s *segment, k int, stored []string, in vector) []ir.Op {
	var ops []ir.Op
	if l := &s.layers[k]; l.recalls && len(stored) > 0 {
		back := stored[g.r.IntN(len(stored))]
		if s.count > 0 {
			back = s.name + ".back{i}"
			g.group(s, k, back, func(int) string { return stored[g.r.IntN(len(stored))] })
			back = shifted(back, k)
		}
		ops = append(ops, newOp(ir.COPY, views(tempOf("%back")), views(viewOf(back, extent(g.width)))))
	}
	if s.layers[k].stores {
		name := s.name + "{i}.kept"
		g.family(s, k, ir.Buffer{Name: name, Kind: ir.Activation, DType: g.dtype, Shape: []int{g.width},
			Space: ir.GlobalScratch})
		for n := range max(1, s.count) {
			g.stored = append(g.stored, resolve(name, s.first+k+n*s.period))
		}
		ops = append(ops, newOp(ir.COPY, views(viewOf(shifted(name, k), span())), views(viewOf(in.name, span()))))
	}
	return ops
}

// product makes the ops that turn one vector, all of it, into a span of the next.
func (g *looped) product(s *segment, k int, in, out string) []ir.Op {
	whole, result := viewOf(in, extent(g.width)), views(viewOf(out, span()))
	switch s.layers[k].kind {
	case normLink:
		return []ir.Op{newOp(ir.RMSNORM, views(tempOf("%n")),
			views(whole, viewOf(shifted(s.name+"{i}.norm", k), extent(g.width))), ir.FloatParam("eps", 1e-5)),
			newOp(ir.GEMV, result, views(tempOf("%n"), g.weight(s, k)))}
	case addLink:
		sum := viewOf("residual", span())
		return []ir.Op{newOp(ir.GEMV, views(tempOf("%y")), views(whole, g.weight(s, k))),
			newOp(ir.ADD, views(sum, result[0]), views(sum, tempOf("%y")))}
	}
	return []ir.Op{newOp(ir.GEMV, result, views(whole, g.weight(s, k)))}
}

// weights declares the weights of a layer, whichever form they have.
func (g *looped) weights(s *segment, k int) {
	matrix := ir.Buffer{Name: s.name + "{i}.weight", Kind: ir.Weight, DType: g.dtype, Shape: []int{g.width, g.width}}
	switch {
	case s.layers[k].weights == strided:
		g.family(s, k, matrix)
	case s.layers[k].weights == ragged && s.count > 0:
		g.group(s, k, s.name+".pick{i}", func(int) string { return "pool" + strconv.Itoa(g.r.IntN(2)) + ".weight" })
	}
	if s.layers[k].kind == normLink {
		matrix.Name, matrix.Shape = s.name+"{i}.norm", matrix.Shape[1:]
		g.family(s, k, matrix)
	}
}

func (g *looped) weight(s *segment, k int) ir.Operand {
	name := "shared.weight"
	switch {
	case s.layers[k].weights == strided:
		name = shifted(s.name+"{i}.weight", k)
	case s.layers[k].weights == ragged && s.count > 0:
		name = shifted(s.name+".pick{i}", k)
	}
	return viewOf(name, span(), extent(g.width))
}

// family declares a buffer for every iteration, or one for a layer without a loop.
func (g *looped) family(s *segment, k int, b ir.Buffer) {
	if b.First, b.Count, b.Step = s.first+k, s.count, s.step(); s.count == 0 {
		b.Name, b.First = resolve(b.Name, s.first), 0
	}
	g.add(b)
}

// group declares a group with a member for every iteration.
func (g *looped) group(s *segment, k int, name string, member func(index int) string) {
	out := ir.Group{Name: name, First: s.first + k, Step: s.step()}
	for n := range s.count {
		out.Members = append(out.Members, member(s.first+k+n*s.period))
	}
	if s.count > 0 {
		g.prog.Groups = append(g.prog.Groups, out)
	}
}

// recallAll is a task behind all layers that reads all that was stored.
func (g *looped) recallAll() {
	if len(g.stored) == 0 {
		return
	}
	s := g.oneTask("recall")
	g.wait(s, vector{counter: "L" + twoDigits(g.layers) + ".x", tasks: tasksOf(&g.home)})
	for n, name := range g.stored {
		s.Ops = append(s.Ops, newOp(ir.COPY, views(tempOf("%kept"+strconv.Itoa(n))),
			views(viewOf(name, extent(g.width)))))
	}
	g.variant.Body = append(g.variant.Body, s)
}
