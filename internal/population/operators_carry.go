package population

import (
	"slices"

	"amkc/ir"
)

// What loops can newly get wrong: what one iteration leaves for another, and which member of a family or a group each
// of them names.
var carryOperators = []Operator{
	operator("single-for-double-buffer", ruleRace, func(d *draft) bool {
		b := d.findBuffer(func(b *ir.Buffer) bool {
			return b.Count > 1 && len(b.Pages) > 1 &&
				b.Pages[0] != b.Pages[1]
		})
		if b >= 0 {
			k := d.r.IntN(len(d.buffers[b].Pages))
			d.buffers[b].Pages = d.buffers[b].Pages[k : k+1]
		}
		return b >= 0
	}),
	operator("family-stride", ruleStructure, func(d *draft) bool {
		b := d.findBuffer(func(b *ir.Buffer) bool { return b.Count > 1 })
		if b >= 0 {
			d.moveStep(&d.buffers[b].Step)
		}
		return b >= 0
	}),
	operator("group-stride", ruleStructure, func(d *draft) bool {
		g := d.findGroup(func(g *ir.Group) bool { return len(g.Members) > 1 })
		if g < 0 {
			return false
		}
		if d.r.IntN(2) == 0 {
			d.moveStep(&d.groups[g].Step)
		} else {
			d.groups[g].First++
		}
		return true
	}),
	operator("loop-step", ruleStructure, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return d.loops[u] != nil && d.loops[u].Count > 1 })
		if u >= 0 {
			d.moveStep(&d.loops[u].Step)
		}
		return u >= 0
	}),
	operator("operand-of-iteration-before", ruleRace, func(d *draft) bool {
		if d.flat != nil {
			return false
		}
		x, ok := d.findView(func(x use) bool { return ir.IsFamily(d.view(x.viewAt).Buf) && !x.buf.Kind.ReadOnly() })
		if ok {
			v := d.ownView(x.viewAt)
			v.Buf = shifted(v.Buf, -1)
		}
		return ok
	}),
	operator("wait-of-iteration-before", ruleRace, func(d *draft) bool {
		u := d.findStage(func(u int) bool {
			return len(d.stages[u].Waits) > 0 &&
				ir.IsFamily(d.stages[u].Waits[0].Counter)
		})
		if u >= 0 {
			d.threshold(u, 0) // copies the list
			w := &d.stages[u].Waits[0]
			w.Counter = shifted(w.Counter, -1)
		}
		return u >= 0
	}),
	operator("group-offset", ruleRace, func(d *draft) bool {
		return d.changeGroup(func(m []string, _, _ int) { copy(m, slices.Concat(m[1:], m[:1])) })
	}),
	operator("swap-in-a-group", ruleRace, func(d *draft) bool {
		return d.changeGroup(func(m []string, i, k int) { m[i], m[k] = m[k], m[i] })
	}),
	operator("repeat-in-a-group", ruleRace, func(d *draft) bool {
		return d.changeGroup(func(m []string, i, k int) { m[i] = m[k] })
	}),
	operator("entry-dropped", ruleProvenance, dropEntry),
	operator("epoch-reused", ruleRace, reuseEpoch),
	operator("stored-once", ruleProvenance, storeOnce),
}

// moveStep makes a step one more or one less.
func (d *draft) moveStep(step *int) {
	was := max(1, *step)
	if *step = was + 1; was > 1 && d.r.IntN(2) == 0 {
		*step = was - 1
	}
}

func (d *draft) findGroup(ok func(*ir.Group) bool) int {
	return d.find(len(d.groups), func(i int) bool { return ok(&d.groups[i]) })
}

// changeGroup changes a group of activations at two places that hold different members.
func (d *draft) changeGroup(change func(members []string, i, k int)) bool {
	g := d.findGroup(func(g *ir.Group) bool {
		b := d.bufferNamed(g.Members[0])
		return b >= 0 && d.buffers[b].Kind == ir.Activation &&
			slices.ContainsFunc(g.Members, func(m string) bool { return m != g.Members[0] })
	})
	if g < 0 {
		return false
	}
	m := slices.Clone(d.groups[g].Members)
	i := d.r.IntN(len(m))
	change(m, i, d.find(len(m), func(k int) bool { return m[k] != m[i] }))
	d.groups[g].Members = m
	return true
}

// dropEntry lets a stage before a loop write elsewhere what the first iteration reads.
func dropEntry(d *draft) bool {
	if d.flat != nil {
		return false
	}
	entries := d.entries()
	first := slices.IndexFunc(d.loops, func(l *ir.Loop) bool { return l != nil })
	x, ok := d.findView(func(x use) bool {
		return x.write && x.unit < first && slices.Contains(entries, d.view(x.viewAt).Buf)
	})
	if !ok {
		return false
	}
	aside := *x.buf
	aside.Name, aside.First, aside.Count, aside.Step, aside.Pages = "aside", 0, 0, 0, nil
	d.buffers = append(d.buffers, aside)
	d.ownView(x.viewAt).Buf = aside.Name
	return true
}

// entries lists the buffers that first iterations read, by their resolved names.
func (d *draft) entries() []string {
	var names []string
	for u, loop := range d.loops {
		if loop == nil {
			continue
		}
		for _, op := range d.stages[u].Ops {
			for _, v := range op.In {
				if name, err := ir.Resolve(v.Buf, loop.First); err == nil {
					names = append(names, d.ungrouped(name))
				}
			}
		}
	}
	return names
}

// ungrouped returns the buffer that a resolved name stands for.
func (d *draft) ungrouped(name string) string {
	for _, g := range d.groups {
		for k, member := range g.Members {
			if full, err := ir.Resolve(g.Name, g.Index(k)); err == nil && full == name {
				return member
			}
		}
	}
	return name
}

// reuseEpoch has one counter count for all iterations.
func reuseEpoch(d *draft) bool {
	if d.flat != nil {
		return false
	}
	c := d.find(len(d.counters), func(c int) bool { return d.counters[c].Count > 1 })
	if c < 0 {
		return false
	}
	family := d.counters[c].Name
	d.counters[c] = ir.Counter{Name: "reused", How: d.counters[c].How, Scope: d.counters[c].Scope}
	for _, s := range d.stages {
		if sameFamily(family, s.Signal) {
			s.Signal = "reused"
		}
		s.Waits = slices.Clone(s.Waits)
		for k := range s.Waits {
			if sameFamily(family, s.Waits[k].Counter) {
				s.Waits[k].Counter = "reused"
			}
		}
	}
	return true
}

// storeOnce takes an op that stores ordinary memory, for each iteration by itself, out of its loop, and stores the last
// iteration's behind the loop.
func storeOnce(d *draft) bool {
	if d.flat != nil {
		return false
	}
	u := d.findStage(func(u int) bool { return d.loops[u] != nil && d.storing(u) >= 0 })
	if u < 0 {
		return false
	}
	k := d.storing(u)
	s, loop := d.stages[u], d.loops[u]
	once := *s
	once.Name, once.Signal = s.Name+".once", "step"
	once.Ops = s.Ops[k : k+1]
	last := resolved(&once, loop.Last())
	d.ownOps(u)
	s.Ops = slices.Delete(s.Ops, k, k+1)
	i := slices.Index(d.variant.Body, ir.Node(loop))
	d.variant.Body = slices.Insert(d.variant.Body, i+1, ir.Node(last))
	return true
}

// storing returns the op of a stage that copies something into ordinary memory of the iteration, beside others; -1
// for none.
func (d *draft) storing(u int) int {
	ops := d.stages[u].Ops
	return slices.IndexFunc(ops, func(o ir.Op) bool {
		if len(ops) < 2 || o.Code != ir.COPY || o.In[0].IsTemp() || !ir.IsFamily(o.Out[0].Buf) {
			return false
		}
		b := d.bufferNamed(o.Out[0].Buf)
		return b >= 0 && d.buffers[b].Kind == ir.Activation && !d.buffers[b].Layout.Words() &&
			d.buffers[b].Space != ir.SMEM
	})
}
