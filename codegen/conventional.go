package codegen

import (
	"reflect"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// Generated text has names of its own, which follow from what things are for: a stage is called by its role and layer,
// a weight by the role of the stage that reads it, a vector by that of the stage that hands it over. So the text of a
// build, and what is read back out of it, is the same whatever its program calls things. What no rule here names keeps
// the name that the program gives it.

// Conventional returns the program as generated text speaks of it. A program with groups keeps its names, and so does
// one that cannot be emitted, for messages to speak of it as it does.
func Conventional(p *ir.Program) (*ir.Program, *diag.Diagnostic) {
	if len(p.Groups) > 0 || !hasBodies(p) {
		return p, nil
	}
	n := &namer{p: p, buffers: ir.BufferDirectory(p), names: ir.NamesOf(p), named: make([]bool, len(p.Buffers))}
	before := ir.NamesOf(p)
	for i := range p.Variants {
		n.variant(i)
	}
	n.tellApart()
	if reflect.DeepEqual(before, n.names) {
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

// ioNames are those of the buffers that a step shares with its host.
var ioNames = map[string]string{ir.RoleToken: "token", ir.RoleNext: "next", ir.RoleLogits: "logits",
	ir.RoleStopIDs: "stop.ids", ir.RoleStopLast: "stop.last", ir.RoleSampling: "sampling",
	ir.RoleEmbeddings: "embeddings", ir.RoleHidden: "hidden"}

// vectorNames are those of what stages hand over, and normNames those of the norms of what they read, by their roles.
var (
	vectorNames = map[string]string{"embed": "x", "qkv": "qkv", "part": "part", "attn": "attn", "o": "h",
		"gate_up": "act", "up": "act", "down": "x", "attn_add": "h", "mlp_add": "x"}
	normNames = map[string]string{"qkv": "input_norm", "gate_up": "post_norm", "up": "post_norm",
		"lm_head": "final_norm", "attn_add": "post_attn_norm", "mlp_add": "post_mlp_norm"}
)

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
		if m, ok := counters.Find(s.Signal, u.at.indices()[0]); ok && !counted[m.Declared] {
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

// buffer names what an operand is of: by a stem alone, or as that of a layer, so many behind that of the stage.
func (u *use) buffer(o ir.Operand, stem string, layered bool, behind int) {
	if o.IsTemp() || stem == "" {
		return
	}
	for t, i := range u.at.within(o.Buf).indices() {
		m, err := u.buffers.At(o.Buf, i)
		if err != nil || u.named[m.Declared] {
			continue
		}
		// A name may stand for members of several families, one after the other.
		if b := &u.p.Buffers[m.Declared]; b.Count > 0 && layered || b.Count == 0 && t == 0 {
			u.named[m.Declared] = true
			u.names.Buffers[m.Declared] = u.name(stem, b.Count > 0, layered, behind)
		}
	}
}

// name is a stem by itself, that of a family, or that of the layer of the stage.
func (u *use) name(stem string, family, layered bool, behind int) string {
	switch layer, _ := u.s.Layer.At(u.at.indices()[0]); {
	case !layered:
		return stem
	case family:
		return "L{i}." + stem
	default:
		return ir.NameIn(ir.Layer{Known: true, N: layer + behind}, stem)
	}
}

// ops names the buffers that the stage uses.
func (u *use) ops() {
	s, layered := u.s, u.s.Layer.Known
	kind, err := classify(s)
	if err != nil {
		return
	}
	for k := range s.Ops {
		o := &s.Ops[k]
		for _, operands := range [][]ir.Operand{o.Out, o.In} {
			for _, x := range operands {
				if b := u.buffers; !x.IsTemp() {
					if m, ok := b.Find(x.Buf, u.at.indices()[0]); ok {
						u.buffer(x, ioNames[u.p.Buffers[m.Declared].Role], false, 0)
					}
				}
			}
		}
		switch o.Code {
		case ir.EMBED:
			u.buffer(operand(s.Ops[len(s.Ops)-1].Out, 0), "residual", false, 0)
			if kind == kernel.EmbedReplicated {
				u.buffer(operand(o.Out, 1), "x", false, 0)
			}
			if !u.p.Model.Tied { // else it is named by lm_head
				u.buffer(operand(o.In, 1), "embed.weight", false, 0)
			}
		case ir.RMSNORM, ir.LAYERNORM:
			norm := normNames[s.Role]
			if kind == kernel.Attend {
				norm = [2]string{"q_norm", "k_norm"}[min(k, 1)]
			}
			if norm != "" {
				u.buffer(operand(o.In, 1), norm+".weight", layered, 0)
			}
			if kind == kernel.AddNormRows {
				u.buffer(operand(o.Out, 0), "branch", false, 0)
			}
			if norm != "" && o.Code == ir.LAYERNORM {
				u.buffer(operand(o.In, 2), norm+".bias", layered, 0)
			}
		case ir.GEMV:
			if s.Role != "" {
				u.buffer(operand(o.In, 1), s.Role+".weight", layered, 0)
			}
		case ir.ROPE:
			u.buffer(operand(o.In, 1), "rope.inv_freq", false, 0)
		case ir.ADD:
			if kind == kernel.Embed {
				u.buffer(operand(o.In, 1), "positions.weight", false, 0)
				continue
			}
			if x := operand(o.In, 1); !x.IsTemp() && s.Role != "" {
				u.buffer(x, s.Role+".bias", layered, 0)
			}
		case ir.ATTENTION:
			u.buffer(operand(o.In, 1), "kv", layered, 0)
		case ir.XIELU:
			u.buffer(operand(o.In, 1), "xielu.weight", layered, 0)
		case ir.STOP:
			u.buffer(operand(o.Out, 0), "stop", false, 0)
		case ir.SAMPLE:
			if kind == kernel.Sample {
				u.buffer(operand(o.Out, 0), "next.sm", false, 0)
				continue
			}
			u.buffer(operand(o.Out, 0), "best.value", false, 0)
			u.buffer(operand(o.Out, 1), "best.index", false, 0)
			continue
		}
		for _, x := range o.Out {
			u.vector(x)
		}
	}
}

// vector names what the stage hands over.
func (u *use) vector(o ir.Operand) {
	m, err := u.buffers.At(o.Buf, u.at.indices()[0])
	if o.IsTemp() || err != nil || !u.p.Buffers[m.Declared].Layout.Words() {
		return
	}
	u.buffer(o, u.stem(), true, u.behind())
}

// stem is what the vector of the stage is called after: what a branch ends in, which others add, after its stage.
func (u *use) stem() string {
	if role := u.s.Role; (role == "o" || role == "down") && !addsToResidual(u.s) {
		return role
	}
	return vectorNames[u.s.Role]
}

// behind is 1 for what hands the vector of the next layer over.
func (u *use) behind() int {
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
	return u.name(u.stem(), c.Count > 0, true, u.behind())
}
