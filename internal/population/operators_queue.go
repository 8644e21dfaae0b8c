package population

import (
	"slices"

	"amkc/ir"
)

// Where tasks run, and in which order.
var queueOperators = []Operator{
	operator("swap-in-queue", ruleDeadlock, swapInQueue),
	operator("exchange-sms", ruleRace, exchangeSMs),
	operator("move-task", ruleRace, func(d *draft) bool { return d.moveUnit(func(int) bool { return true }) }),
	operator("move-on-chip-owner", ruleMemory, func(d *draft) bool { return d.moveUnit(d.onChip) }),
	operator("rotate-by-iteration", ruleMemory, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return d.loops[u] != nil && placed(&d.stages[u].Dist) })
		if u >= 0 {
			s := d.stages[u]
			s.Dist.Step = (s.Dist.Step + 1) % s.Dist.SMs
		}
		return u >= 0
	}),
	operator("fewer-sms", ruleDeadlock, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return placed(&d.stages[u].Dist) })
		if u >= 0 {
			dist := &d.stages[u].Dist
			dist.SMs--
			dist.Rot, dist.Step = dist.Rot%dist.SMs, dist.Step%dist.SMs
		}
		return u >= 0
	}),
	operator("empty-spans", ruleEdges, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return d.stages[u].Dist.Kind == ir.Spread })
		if u >= 0 {
			d.stages[u].Dist.Empty = !d.stages[u].Dist.Empty
		}
		return u >= 0
	}),
	operator("task-without-sm", ruleMemory, func(d *draft) bool {
		if d.flat != nil {
			t := d.findTask(func(t *ir.Task) bool { return t.SM >= 0 })
			if t >= 0 {
				d.flat.Tasks[t].SM = -1
			}
			return t >= 0
		}
		u := d.findStage(func(u int) bool { return d.stages[u].Dist.Kind != ir.Tiled })
		if u < 0 {
			return false
		}
		if dist := &d.stages[u].Dist; dist.Kind == ir.Explicit {
			d.ownSpan(u).SM = -1
		} else {
			*dist = ir.Dist{Kind: ir.Tiled, Extent: dist.Extent, Grain: dist.Grain}
		}
		return true
	}),
	operator("drop-task", ruleProvenance, dropUnit),
	operator("repeat-task", ruleRace, repeatUnit),
}

// placed reports whether a distribution deals out spans over more than one SM.
func placed(dist *ir.Dist) bool {
	return (dist.Kind == ir.Spread || dist.Kind == ir.ByUnit) && dist.SMs > 1
}

func (d *draft) findStage(ok func(int) bool) int { return d.find(len(d.stages), ok) }

func (d *draft) findTask(ok func(*ir.Task) bool) int {
	if d.flat == nil {
		return -1
	}
	return d.find(len(d.flat.Tasks), func(i int) bool { return ok(&d.flat.Tasks[i]) })
}

// ownSpan returns a listed task of a stage for changing.
func (d *draft) ownSpan(unit int) *ir.TaskSpan {
	dist := &d.stages[unit].Dist
	dist.Spans = slices.Clone(dist.Spans)
	return &dist.Spans[d.r.IntN(len(dist.Spans))]
}

func swapInQueue(d *draft) bool {
	if d.flat == nil {
		u := d.findStage(func(u int) bool { return u > 0 && d.loops[u] == d.loops[u-1] })
		if u >= 0 { // the stages were copied: exchange what they hold
			*d.stages[u], *d.stages[u-1] = *d.stages[u-1], *d.stages[u]
		}
		return u >= 0
	}
	tasks := d.flat.Tasks
	next := func(i int) int {
		n := slices.IndexFunc(tasks[i+1:], func(t ir.Task) bool { return t.SM == tasks[i].SM })
		return n + i + 1
	}
	i := d.find(len(tasks), func(i int) bool { return tasks[i].SM >= 0 && next(i) > i })
	if i >= 0 {
		tasks[i], tasks[next(i)] = tasks[next(i)], tasks[i]
	}
	return i >= 0
}

func exchangeSMs(d *draft) bool {
	if d.flat == nil {
		u := d.findStage(func(u int) bool {
			s := d.stages[u].Dist.Spans
			return len(s) > 1 && s[0].SM != s[len(s)-1].SM
		})
		if u >= 0 {
			dist := &d.stages[u].Dist
			dist.Spans = slices.Clone(dist.Spans)
			a, b := &dist.Spans[0], &dist.Spans[len(dist.Spans)-1]
			a.SM, b.SM = b.SM, a.SM
		}
		return u >= 0
	}
	a := &d.flat.Tasks[d.r.IntN(len(d.flat.Tasks))]
	b := d.findTask(func(t *ir.Task) bool { return t.SM != a.SM })
	if b >= 0 {
		a.SM, d.flat.Tasks[b].SM = d.flat.Tasks[b].SM, a.SM
	}
	return b >= 0
}

// moveUnit puts a task on another SM, or rotates a stage by one.
func (d *draft) moveUnit(ok func(unit int) bool) bool {
	if d.flat != nil {
		if d.flat.SMs < 2 {
			return false
		}
		t := d.find(len(d.flat.Tasks), ok)
		if t >= 0 {
			task := &d.flat.Tasks[t]
			task.SM = (max(0, task.SM) + 1 + d.r.IntN(d.flat.SMs-1)) % d.flat.SMs
		}
		return t >= 0
	}
	u := d.findStage(func(u int) bool {
		dist := &d.stages[u].Dist
		return ok(u) && (placed(dist) || dist.Kind == ir.Explicit)
	})
	if u < 0 {
		return false
	}
	if dist := &d.stages[u].Dist; dist.Kind == ir.Explicit {
		if s := d.ownSpan(u); s.SM > 0 {
			s.SM--
		} else {
			s.SM++
		}
	} else {
		dist.Rot = (dist.Rot + 1) % dist.SMs
	}
	return true
}

// onChip reports whether a unit touches shared memory.
func (d *draft) onChip(unit int) bool {
	for k := range d.ops(unit) {
		at := opAt{unit, k}
		for i := range d.op(at).Out {
			if b := d.bufferOf(viewAt{at, true, i}); b >= 0 && d.buffers[b].Space == ir.SMEM {
				return true
			}
		}
	}
	return false
}

func dropUnit(d *draft) bool {
	if d.units() < 2 {
		return false
	}
	u := d.r.IntN(d.units())
	if d.flat != nil {
		d.flat.Tasks = slices.Delete(d.flat.Tasks, u, u+1)
		return true
	}
	if l := d.loops[u]; l != nil {
		l.Body = slices.DeleteFunc(l.Body, func(s *ir.Stage) bool { return s == d.stages[u] })
		return len(l.Body) > 0
	}
	d.variant.Body = slices.DeleteFunc(d.variant.Body, func(n ir.Node) bool { return n == ir.Node(d.stages[u]) })
	return true
}

func repeatUnit(d *draft) bool {
	u := d.r.IntN(d.units())
	if d.flat != nil {
		again := d.flat.Tasks[u]
		again.Name += ".again"
		d.flat.Tasks = slices.Insert(d.flat.Tasks, u+1, again)
		return true
	}
	again := *d.stages[u]
	again.Name += ".again"
	if l := d.loops[u]; l != nil {
		l.Body = slices.Insert(l.Body, slices.Index(l.Body, d.stages[u])+1, &again)
	} else {
		d.variant.Body = slices.Insert(d.variant.Body, slices.Index(d.variant.Body, ir.Node(d.stages[u]))+1,
			ir.Node(&again))
	}
	return true
}
