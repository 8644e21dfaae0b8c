package ir

import (
	"maps"
	"slices"

	"amkc/ir/diag"
)

// CheckNames reports every string of a program that is not a valid name (CheckName), and an architecture that is not in
// the form of nvcc's names. A program has no other strings. Check includes this. Codegen calls it as well, so that
// nothing is emitted from an unchecked program.
func CheckNames(p *Program) diag.List {
	c := checker{p: p}
	c.names()
	return c.diags
}

func (c *checker) names() {
	p := c.p
	c.optionalName("model", p.Model.Name)
	c.optionalName("architecture of the model", p.Model.Architecture)
	if t := p.Target; t != nil {
		c.optionalName("target", t.Name)
		if err := CheckArch(t.Arch); t.Arch != "" && err != nil {
			c.fail(CodeName, "target "+t.Name, "arch %v", err)
		}
	}
	c.configNames(&p.Config)
	for i := range p.Pages {
		c.name("page", p.Pages[i].Name)
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		c.name("buffer", b.Name)
		c.role("buffer "+b.Name, b.Role)
		for _, pc := range b.Pieces {
			c.name("piece of buffer "+b.Name, pc.Key)
		}
		c.eachName("page of buffer "+b.Name, b.Pages)
	}
	for i := range p.Groups {
		c.name("group", p.Groups[i].Name)
		c.eachName("member of group "+p.Groups[i].Name, p.Groups[i].Members)
	}
	for i := range p.Variants {
		c.variantNames(&p.Variants[i])
	}
}

func (c *checker) configNames(cfg *ScheduleConfig) {
	for _, group := range slices.Sorted(maps.Keys(cfg.Tiling)) {
		c.name("config: group of tiling", group)
		c.eachName("config: knob of tiling."+group, slices.Sorted(maps.Keys(cfg.Tiling[group])))
	}
	c.optionalName("config: sm_assignment", cfg.SMAssignment.Policy)
	c.eachName("config: sm_assignment", slices.Sorted(maps.Keys(cfg.SMAssignment.Rotations)))
	c.optionalName("config: page_allocation", cfg.PageAllocation)
}

func (c *checker) variantNames(v *Variant) {
	c.name("variant", v.Name)
	for i := range v.Counters {
		c.name("counter", v.Counters[i].Name)
		c.role("counter "+v.Counters[i].Name, v.Counters[i].Role)
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *Stage:
			c.stageNames(n)
		case *Loop:
			c.name("loop", n.Name)
			for _, s := range n.Body {
				c.stageNames(s)
			}
		}
	}
}

func (c *checker) stageNames(s *Stage) {
	c.name("stage", s.Name)
	c.role("stage "+s.Name, s.Role)
	for _, w := range s.Waits {
		c.name("wait of stage "+s.Name, w.Counter)
	}
	c.optionalName("signal of stage "+s.Name, s.Signal)
	for i := range s.Ops {
		o := &s.Ops[i]
		for _, list := range [][]Operand{o.Out, o.In} {
			for k := range list {
				if err := CheckName(list[k].Buf); err != nil { // the position is put together only where it is needed
					c.fail(CodeName, "operand of stage "+s.Name, "the name %v", err)
				}
			}
		}
		for k := range o.Params {
			c.name("parameter in stage "+s.Name, o.Params[k].Key)
		}
	}
}

// name checks what every name must be, whatever it names.
func (c *checker) name(what, name string) {
	if name == "" {
		c.fail(CodeName, what, "has no name")
	} else if err := CheckName(name); err != nil {
		c.fail(CodeName, what, "the name %v", err)
	}
}

func (c *checker) role(what, role string) {
	if role == "" {
		return
	}
	if err := CheckRole(role); err != nil {
		c.fail(CodeRole, what, "the role %v", err)
	}
}

// optionalName is for what a program need not say.
func (c *checker) optionalName(what, name string) {
	if name != "" {
		c.name(what, name)
	}
}

func (c *checker) eachName(what string, names []string) {
	for _, n := range names {
		c.name(what, n)
	}
}
