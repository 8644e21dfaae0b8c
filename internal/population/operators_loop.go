package population

import (
	"fmt"
	"strconv"
	"strings"

	"amkc/ir"
)

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
		u := d.findStage(func(u int) bool {
			return len(d.stages[u].Waits) > 0 &&
				ir.IsFamily(d.stages[u].Waits[0].Counter)
		})
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

// stride names the member one further along, or one less far: {i+1} for {i}, and {i} for {i+1}.
func stride(name string) string {
	if strings.Contains(name, "{i}") {
		return shifted(name, 1)
	}
	return shifted(name, -1)
}

// shifted names the member so many indices further on.
func shifted(name string, by int) string {
	open, end := strings.IndexByte(name, '{'), strings.IndexByte(name, '}')
	if open < 0 || end < open {
		return name
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name[open+1:end], "i"))
	if err != nil {
		n = 0 // {i}
	}
	index := "i"
	if n += by; n != 0 {
		index = fmt.Sprintf("i%+d", n)
	}
	return name[:open+1] + index + name[end:]
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
