package population

import (
	"strings"

	"amkc/ir"
)

// Names, indices and intervals.
var structureOperators = []Operator{
	operator("buffer-name-twice", ruleStructure, func(d *draft) bool {
		a := d.r.IntN(len(d.buffers))
		b := d.findBuffer(func(b *ir.Buffer) bool { return b.Name != d.buffers[a].Name })
		if b >= 0 {
			d.buffers[b].Name = d.buffers[a].Name
		}
		return b >= 0
	}),
	operator("counter-name-twice", ruleStructure, func(d *draft) bool {
		a := d.r.IntN(len(d.counters))
		b := d.find(len(d.counters), func(i int) bool { return i != a })
		if b >= 0 {
			d.counters[b].Name = d.counters[a].Name
		}
		return b >= 0
	}),
	operator("page-name-twice", ruleStructure, func(d *draft) bool {
		if len(d.pages) < 2 {
			return false
		}
		d.pages[0].Name = d.pages[1].Name
		return true
	}),
	operator("task-name-twice", ruleStructure, func(d *draft) bool {
		if d.units() < 2 {
			return false
		}
		u := 1 + d.r.IntN(d.units()-1)
		if d.flat != nil {
			d.flat.Tasks[u].Name = d.flat.Tasks[u-1].Name
		} else {
			d.stages[u].Name = d.stages[u-1].Name
		}
		return true
	}),
	operator("no-such-sm", ruleStructure, func(d *draft) bool {
		u := d.r.IntN(d.units())
		if d.flat != nil {
			d.flat.Tasks[u].SM = d.flat.SMs + d.r.IntN(2)
			return true
		}
		sms := ir.MaxSMs
		if d.prog.Target != nil {
			sms = d.prog.Target.SMs
		}
		if dist := &d.stages[u].Dist; dist.Kind == ir.Explicit {
			d.ownSpan(u).SM = sms
		} else {
			dist.SMs = sms + 1
		}
		return true
	}),
	operator("no-such-counter", ruleStructure, func(d *draft) bool {
		u, k, ok := d.findWait()
		if !ok {
			return false
		}
		d.threshold(u, k) // copies the list
		if d.flat != nil {
			d.flat.Tasks[u].Waits[k].Counter = len(d.counters)
		} else {
			d.stages[u].Waits[k].Counter = "nowhere"
		}
		return true
	}),
	operator("no-such-buffer", ruleStructure, func(d *draft) bool {
		x, ok := d.findView(readUse)
		if !ok {
			return false
		}
		d.ownView(x.viewAt).Buf = "nowhere"
		if d.flat != nil {
			d.flat.Tasks[x.unit].Ops[x.opAt.op].InBuf[x.arg] = len(d.buffers)
		}
		return true
	}),
	operator("interval", ruleMemory, func(d *draft) bool {
		lo, hi := d.interval()
		switch d.r.IntN(4) {
		case 0:
			*lo++
		case 1:
			*lo--
		case 2:
			*hi++
		default:
			*hi--
		}
		return true
	}),
}

// interval is that of the positions the variant is for.
func (d *draft) interval() (lo, hi *int) {
	if d.flat != nil {
		return &d.flat.Lo, &d.flat.Hi
	}
	return &d.variant.Lo, &d.variant.Hi
}

// Loops: iterations, names that count with them, and families of buffers.
var loopOperators = []Operator{
	operator("trip-count", ruleDeadlock, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return d.loops[u] != nil })
		if u >= 0 {
			d.loops[u].Count += 1 - 2*d.r.IntN(2)
		}
		return u >= 0
	}),
	operator("first-iteration", ruleRace, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return d.loops[u] != nil })
		if u >= 0 {
			d.loops[u].First++
		}
		return u >= 0
	}),
	operator("operand-of-next-iteration", ruleRace, func(d *draft) bool {
		if d.flat != nil {
			return false
		}
		x, ok := d.findView(func(x use) bool { return ir.IsFamily(d.view(x.viewAt).Buf) && !x.buf.Kind.ReadOnly() })
		if ok {
			v := d.ownView(x.viewAt)
			v.Buf = stride(v.Buf)
		}
		return ok
	}),
	operator("wait-of-next-iteration", ruleDeadlock, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return len(d.stages[u].Waits) > 0 && ir.IsFamily(d.stages[u].Waits[0].Counter) })
		if u >= 0 {
			d.threshold(u, 0) // copies the list
			w := &d.stages[u].Waits[0]
			w.Counter = stride(w.Counter)
		}
		return u >= 0
	}),
	operator("signal-of-next-iteration", ruleDeadlock, func(d *draft) bool {
		u := d.findStage(func(u int) bool { return ir.IsFamily(d.stages[u].Signal) })
		if u >= 0 {
			d.stages[u].Signal = stride(d.stages[u].Signal)
		}
		return u >= 0
	}),
	operator("one-buffer-for-all-iterations", ruleRace, oneBuffer),
	operator("family-one-shorter", ruleStructure, func(d *draft) bool {
		b := d.findBuffer(func(b *ir.Buffer) bool { return b.Count > 1 })
		if b >= 0 {
			d.buffers[b].Count--
		}
		return b >= 0
	}),
	operator("variant-name-twice", ruleStructure, func(d *draft) bool {
		if d.prog == nil || len(d.prog.Variants) < 2 {
			return false
		}
		d.variant.Name = d.prog.Variants[0].Name
		if d.variant == &d.prog.Variants[0] {
			d.variant.Name = d.prog.Variants[1].Name
		}
		return true
	}),
}

// stride names the member one further along: {i+1} for {i}, and {i} for {i+1}.
func stride(name string) string {
	if strings.Contains(name, "{i}") {
		return strings.Replace(name, "{i}", "{i+1}", 1)
	}
	return strings.Replace(name, "{i+1}", "{i}", 1)
}

// oneBuffer keeps a vector of every iteration in one buffer.
func oneBuffer(d *draft) bool {
	if d.flat != nil {
		return false
	}
	k := d.findBuffer(func(b *ir.Buffer) bool { return b.Count > 1 && b.Kind == ir.Activation })
	if k < 0 {
		return false
	}
	b := &d.buffers[k]
	family := b.Name
	b.Name, b.First, b.Count, b.Step = "only", 0, 0, 0
	b.Pages = b.Pages[:min(1, len(b.Pages))]
	for i := range d.prog.Variants {
		d.renameIn(&d.prog.Variants[i], family, b.Name)
	}
	return true
}

// renameIn replaces a family in every view of a variant. Stages of other variants than the draft's are copied first.
func (d *draft) renameIn(v *ir.Variant, family, name string) {
	rename := func(s *ir.Stage) *ir.Stage {
		out := *s
		out.Ops = append([]ir.Op(nil), s.Ops...)
		for k := range out.Ops {
			o := &out.Ops[k]
			o.In, o.Out = cloneViews(o.In), cloneViews(o.Out)
			for _, list := range [][]ir.Operand{o.In, o.Out} {
				for i := range list {
					if sameFamily(family, list[i].Buf) {
						list[i].Buf = name
					}
				}
			}
		}
		return &out
	}
	body := append([]ir.Node(nil), v.Body...)
	for i, n := range body {
		switch n := n.(type) {
		case *ir.Stage:
			body[i] = rename(n)
		case *ir.Loop:
			l := *n
			l.Body = append([]*ir.Stage(nil), n.Body...)
			for k := range l.Body {
				l.Body[k] = rename(l.Body[k])
			}
			body[i] = &l
		}
	}
	v.Body = body
}
