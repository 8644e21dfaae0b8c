package codegen

import (
	"reflect"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// Generated text has names of its own, which follow from what things are for: a stage is called by its role and layer,
// a weight by the role of the stage that reads it, a vector by that of the stage that publishes it. So the text of a
// build, and what is read back out of it, is the same whatever its program calls things. What no rule here names keeps
// the name that the program gives it.

// Conventional returns the program with the names of generated text. A program with groups keeps its names, and so does
// one that cannot be emitted, so that messages use its own names. A pass of several tokens has the names of the program
// for one token.
func Conventional(p *ir.Program) (*ir.Program, *diag.Diagnostic) {
	one, several := ir.OneToken(p)
	if len(p.Groups) > 0 || several != nil || !hasBodies(one) {
		return p, nil
	}
	n := &namer{p: one, buffers: ir.BufferDirectory(one), names: ir.NamesOf(p), named: make([]bool, len(p.Buffers))}
	for i := range one.Variants {
		n.variant(i)
	}
	n.tellApart()
	if reflect.DeepEqual(ir.NamesOf(p), n.names) {
		return p, nil
	}
	q, err := ir.Rename(p, n.names)
	if err != nil {
		return nil, diag.Errorf(codeStructure, "program", "%v", err)
	}
	if wrong := ir.Check(q); wrong.Err() != nil {
		return nil, diag.Errorf(codeStructure, "program", "has objects of one role, which generated text would call "+
			"alike: want one stage and one counter for each role in a layer").With(wrong[0].Error())
	}
	return q, nil
}

// hasBodies reports whether there is a body for every stage.
func hasBodies(p *ir.Program) bool {
	all := true
	for i := range p.Variants {
		p.Variants[i].Each(func(s *ir.Stage, _ *ir.Loop) {
			_, err := classify(s)
			all = all && err == nil
		})
	}
	return all
}

// A namer gives names by the first use of each thing.
type namer struct {
	p       *ir.Program
	buffers *ir.Directory
	names   ir.Names
	named   []bool // of the buffers
}

// tellApart numbers buffers that would be called alike: those that the rules have named first, in their order.
func (n *namer) tellApart() {
	taken, last := ir.BufferDirectory(&ir.Program{}), map[string]int{} // the last number of a name
	for _, named := range []bool{true, false} {
		for k := range n.p.Buffers {
			if n.named[k] != named {
				continue
			}
			b, name := n.p.Buffers[k], n.names.Buffers[k]
			for b.Name = name; has(taken, &b); {
				last[name] = max(1, last[name]) + 1
				b.Name = name + itoa(last[name])
			}
			n.names.Buffers[k] = b.Name
			taken.Add(&b)
		}
	}
}

// has reports whether a member of a buffer is called as one that is known.
func has(d *ir.Directory, b *ir.Buffer) bool {
	for k := range max(1, b.Count) {
		if _, ok := d.Find(b.Name, b.Index(k)); ok {
			return true
		}
	}
	return false
}

func (n *namer) variant(i int) {
	v, names := &n.p.Variants[i], &n.names.Variants[i]
	counters, counted := ir.CounterDirectory(v), make([]bool, len(v.Counters))
	for k := range names.Loops {
		if names.Loops[k] = "layers"; k > 0 {
			names.Loops[k] += "." + itoa(k)
		}
	}
	k := 0
	v.Each(func(s *ir.Stage, l *ir.Loop) {
		if s.Role != "" {
			names.Stages[k] = ir.NameIn(s.Layer, s.Role)
		}
		k++
		u := &use{n, s, site{loop: l}}
		u.ops()
		if m, ok := counters.Find(s.Signal, u.at.indicesOf(u.s)[0]); ok && !counted[m.Declared] {
			counted[m.Declared] = true
			if name := u.counter(&v.Counters[m.Declared]); name != "" {
				names.Counters[m.Declared] = name
			}
		}
	})
}

// A use is a stage where it stands: what it does says what the things that it uses are.
type use struct {
	*namer
	s  *ir.Stage
	at site
}

// buffer gives a buffer its name: a stem, alone or with a layer, whose number is the stage's plus next.
func (u *use) buffer(name, stem string, layered bool, next int) {
	if name == "" || stem == "" || name[0] == '%' {
		return
	}
	for t, i := range u.at.within(name).indices() {
		m, err := u.buffers.At(name, i)
		if err != nil || u.named[m.Declared] {
			continue
		}
		// A name may stand for members of several families, one after the other.
		if b := &u.p.Buffers[m.Declared]; b.Count > 0 && layered || b.Count == 0 && t == 0 {
			u.named[m.Declared] = true
			u.names.Buffers[m.Declared] = u.name(stem, b.Count > 0, layered, next)
		}
	}
}

// name is a stem alone, that of a family, or that of the layer of the stage.
func (u *use) name(stem string, family, layered bool, next int) string {
	switch layer, _ := u.s.Layer.At(u.at.indicesOf(u.s)[0]); {
	case !layered:
		return stem
	case family:
		return "L{i}." + stem
	default:
		return ir.NameIn(ir.Layer{Known: true, N: layer + next}, stem)
	}
}

// ops names the buffers that the stage uses.
func (u *use) ops() {
	s := u.s
	kind, err := classify(s)
	if err != nil {
		return
	}
	for k := range s.Ops {
		for _, x := range append(slices.Clone(s.Ops[k].Out), s.Ops[k].In...) {
			if m, ok := u.buffers.Find(x.Buf, u.at.indicesOf(u.s)[0]); ok && !x.IsTemp() {
				u.buffer(x.Buf, kernel.Shared[u.p.Buffers[m.Declared].Role], false, 0)
			}
		}
	}
	var of kernel.Stage
	kind.Read(&of, s.Ops)
	if kind.Replicated() {
		u.buffer(of.Rounded, kernel.Named.Rounded, false, 0)
	}
	if u.p.Model.Tied { // it is named by lm_head
		of.Table = ""
	}
	for _, b := range kernel.Buffers {
		if b.At == nil {
			continue
		}
		stem, layered := strings.CutPrefix(b.Name, "L{i}.")
		for word, means := range map[string]string{"ROLE": s.Role, "NORM": kernel.Norms[s.Role]} {
			if rest, has := strings.CutPrefix(stem, word); has {
				stem = means + rest
				if means == "" {
					stem = ""
				}
			}
		}
		u.buffer(*b.At(&of), stem, layered && s.Layer.Known, 0)
	}
	for k := range s.Ops {
		for _, x := range s.Ops[k].Out {
			u.vector(x)
		}
	}
}

// vector names what the stage publishes.
func (u *use) vector(o ir.Operand) {
	m, err := u.buffers.At(o.Buf, u.at.indicesOf(u.s)[0])
	if o.IsTemp() || err != nil || !u.p.Buffers[m.Declared].Layout.Words() {
		return
	}
	u.buffer(o.Buf, u.stem(), true, u.nextLayer())
}

// stem is what the vector of the stage is called after: what a branch ends in, which others add, after its stage.
func (u *use) stem() string {
	if role := u.s.Role; (role == "o" || role == "down") && !addsToResidual(u.s) {
		return role
	}
	for _, v := range kernel.Vectors {
		if slices.Contains(v.Roles, u.s.Role) {
			return strings.TrimPrefix(v.Name, "L{i}.")
		}
	}
	return ""
}

// nextLayer is 1 if the stage publishes the input of the next layer.
func (u *use) nextLayer() int {
	if u.s.Layer.Known && u.stem() == "x" {
		return 1
	}
	return 0
}

// counter is the name of the counter that the stage signals, "" for one that keeps its own.
func (u *use) counter(c *ir.Counter) string {
	kind, err := classify(u.s)
	switch {
	case err != nil:
		return ""
	case c.Role == ir.RoleStep:
		return ir.RoleStep
	case kind == kernel.Arrive:
		return u.name("join", c.Count > 0, true, 0)
	case choosesToken(u.s):
		return "best"
	case u.stem() == "":
		return ""
	}
	return u.name(u.stem(), c.Count > 0, true, u.nextLayer())
}
